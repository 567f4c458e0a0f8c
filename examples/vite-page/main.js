import { throttledFetch } from "tollgate";

// A little slower than the API allows, since requests may arrive late.
const politeFetch = throttledFetch({ algorithm: "token_bucket", capacity: 5, refillRate: 4 });

async function show(response) {
  const item = document.createElement("li");
  item.textContent = (await response).status;
  document.querySelector("ol").append(item);
}

function sendTwenty(send) {
  for (let sent = 0; sent < 20; sent += 1) show(send("/api"));
}

document.querySelector("#throttled").onclick = () => sendTwenty(politeFetch);
document.querySelector("#plain").onclick = () => sendTwenty(fetch);
