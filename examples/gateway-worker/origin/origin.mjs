let served = 0;

export default {
  fetch(request) {
    served += 1;
    return new Response(`${request.method} ${new URL(request.url).pathname} is request ${served}\n`);
  },
};
