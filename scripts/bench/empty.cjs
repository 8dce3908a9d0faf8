// The least that answers: an empty server on `node:http`, to hold a start against.
require("node:http")
  .createServer((_, response) => response.end("{}"))
  .listen(Number(process.env.PORT), "127.0.0.1")
