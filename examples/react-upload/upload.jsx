import { useEffect, useState } from "react";
import { send } from "./send.js";

export function Upload({ file, throttle }) {
  const [cancelling] = useState(() => new AbortController());
  const [place, setPlace] = useState();
  const [progress, setProgress] = useState();
  const [end, setEnd] = useState();

  useEffect(() => {
    const leaving = new AbortController();
    const signal = AbortSignal.any([cancelling.signal, leaving.signal]);
    const upload = async () => {
      await throttle.acquire({ signal, onChange: setPlace });
      setProgress(0);
      await send(file, { signal, onProgress: setProgress });
    };
    upload().then(
      () => setEnd("done"),
      () => leaving.signal.aborted || setEnd(cancelling.signal.aborted ? "cancelled" : "failed"),
    );
    return () => leaving.abort();
  }, [file, throttle, cancelling]);

  return (
    <li>
      <span>{file.name}</span>
      {end ? <span>{end}</span> : <Status place={place} progress={progress} name={file.name} />}
      {!end && (
        <button type="button" aria-label={`Cancel ${file.name}`} onClick={() => cancelling.abort()}>
          Cancel
        </button>
      )}
    </li>
  );
}

function Status({ place, progress, name }) {
  if (progress !== undefined) return <progress value={progress} aria-label={`Upload of ${name}`} />;
  if (place === undefined) return <span>starting</span>;
  return (
    <span>
      position {place.position}, about {Math.ceil(place.wait / 1000)} s
    </span>
  );
}
