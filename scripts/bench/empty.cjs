// An empty server on `node:http`, as the baseline of a start.
require("node:http")
  .createServer((_, response) => response.end("{}"))
  .listen(Number(process.env.PORT), "127.0.0.1")
