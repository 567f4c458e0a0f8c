import { useMemo, useRef, useState } from "react";
import { useRateLimit, useThrottle } from "tollgate/react";

export function Search() {
  const [found, setFound] = useState([]);
  const [headers, setHeaders] = useState();
  const { allowed, remaining, retryIn } = useRateLimit(headers);
  const throttle = useThrottle({ algorithm: "token_bucket", capacity: 2, refillRate: 1 });
  const last = useRef();

  const search = useMemo(
    () =>
      throttle.wrap(
        async (text) => {
          // An answer to "a" that comes after that to "ab" must not replace it.
          last.current?.abort();
          last.current = new AbortController();
          const { signal } = last.current;
          const response = await fetch(`/search?q=${encodeURIComponent(text)}`, { signal });
          setHeaders(response.headers);
          if (response.ok) setFound(await response.json());
        },
        { edge: "debounce", wait: 300 },
      ),
    [throttle],
  );

  // A call that waits is rejected when the component unmounts.
  const type = ({ target }) => search(target.value).catch(() => {});

  return (
    <main>
      <label htmlFor="search">Search</label>
      <input id="search" type="search" autoComplete="off" onChange={type} />
      <p className="status" role="status">
        {allowed
          ? remaining !== undefined && `${remaining} searches left`
          : `Wait ${Math.ceil(retryIn / 1000)} s`}
      </p>
      <ul>
        {found.map((word) => (
          <li key={word}>{word}</li>
        ))}
      </ul>
    </main>
  );
}
