/** A local OpenAI-compatible server like Ollama, with a chat model and an embedding model. It rejects the key `wrong`. */
import { once } from "node:events"
import { createServer } from "node:http"
import type { Server } from "node:http"
import type { AddressInfo } from "node:net"

const list = { data: [{ id: "llama:3b", max_model_len: 8192 }, { id: "nomic-embed-text" }] }
const answer = {
  choices: [{ index: 0, message: { role: "assistant", content: "Hello!" }, finish_reason: "stop" }],
  usage: { prompt_tokens: 12, completion_tokens: 5 }
}

const routes: Readonly<Record<string, object>> = { "/v1/models": list, "/v1/chat/completions": answer }

export const startLocalServer = async (): Promise<{ readonly server: Server; readonly address: string }> => {
  const server = createServer((request, response) => {
    request.resume().on("end", () => {
      const found = routes[request.url ?? ""]
      const status = request.headers.authorization === "Bearer wrong" ? 401 : found === undefined ? 404 : 200
      response.writeHead(status, { "content-type": "application/json" })
      response.end(JSON.stringify(found ?? {}))
    })
  })
  server.listen(0, "127.0.0.1")
  await once(server, "listening")
  return { server, address: `http://127.0.0.1:${(server.address() as AddressInfo).port}` }
}
