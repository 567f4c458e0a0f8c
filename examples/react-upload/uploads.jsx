import { useState } from "react";
import { useQueue, useThrottle } from "tollgate/react";
import { Upload } from "./upload.jsx";

export function Uploads() {
  const throttle = useThrottle({ algorithm: "token_bucket", capacity: 2, refillRate: 1, per: "2s" });
  const { pending, wait } = useQueue(throttle);
  const [uploads, setUploads] = useState([]);

  const add = ({ target }) => {
    const added = Array.from(target.files, (file, index) => ({ id: uploads.length + index, file }));
    setUploads([...uploads, ...added]);
  };

  return (
    <main>
      <label>
        Files <input type="file" multiple onChange={add} />
      </label>
      <p role="status">
        {pending > 0 && `${pending} waiting, the last for about ${Math.ceil(wait / 1000)} s`}
      </p>
      <ul>
        {uploads.map(({ id, file }) => (
          <Upload key={id} file={file} throttle={throttle} />
        ))}
      </ul>
    </main>
  );
}
