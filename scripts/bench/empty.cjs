// An empty `node:http` server, the baseline for start times.
require("node:http")
  .createServer((_, response) => response.end("{}"))
  .listen(Number(process.env.PORT), "127.0.0.1")
