/** Sends a file, and reports its progress from 0 to 1: `fetch` cannot. */
export const send = (file, { signal, onProgress }) =>
  new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    const abort = () => request.abort();
    request.upload.onprogress = ({ loaded, total }) => onProgress(loaded / total);
    request.onload = () => (request.status < 300 ? resolve() : reject(new Error(`status ${request.status}`)));
    request.onerror = () => reject(new Error("the network failed"));
    request.onabort = () => reject(signal.reason);
    request.onloadend = () => signal.removeEventListener("abort", abort);
    signal.addEventListener("abort", abort);
    request.open("POST", "/upload");
    request.send(file);
  });
