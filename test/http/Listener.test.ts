/** The server on its port, ahead of its service: what it answers by itself, what it holds, and for how long. */
import { once } from "node:events"
import { request } from "node:http"
import type { IncomingMessage, ServerResponse } from "node:http"
import { connect, createServer } from "node:net"
import type { AddressInfo } from "node:net"
import { text } from "node:stream/consumers"
import { afterEach, expect, it, vi } from "vitest"
import * as Listener from "../../src/http/server/Listener.ts"

const host = "127.0.0.1"
const open: Array<{ readonly close: () => unknown }> = []

afterEach(() => {
  vi.useRealTimers()
  for (const server of open.splice(0)) server.close()
})

const listening = async () => {
  const front = Listener.make()
  open.push(front.server)
  front.server.listen(0, host)
  await once(front.server, "listening")
  return { front, port: (front.server.address() as AddressInfo).port }
}

const ask = async (port: number, method: string, path: string, body = "") => {
  const sent = request({ host, port, method, path, agent: false, headers: { "content-length": body.length } })
  sent.end(body)
  const [answer] = (await once(sent, "response")) as [IncomingMessage]
  return {
    status: answer.statusCode,
    reason: answer.statusMessage,
    headers: answer.headers,
    text: await text(answer)
  }
}

/** Answers with the method, the path and the body of the request. */
const echo = (asked: IncomingMessage, response: ServerResponse) =>
  void text(asked).then((body) => response.end(`${asked.method} ${asked.url} ${body}`))

const serving = (
  clientError = (_: Error, socket: { readonly end: (text: string) => unknown }) => void socket.end("?")
) => ({
  request: echo,
  checkContinue: echo,
  checkExpectation: echo,
  connect: () => {},
  clientError
})

const soon = () => new Promise((resolve) => setTimeout(resolve, 50))

it("says that the process is alive, as the service says it", async () => {
  const { port } = await listening()
  const answer = await ask(port, "GET", "/healthz")
  expect(answer).toMatchObject({ status: 200, reason: "OK", text: `{"status":"ok"}` })
  expect(answer.headers).toMatchObject({
    "content-type": "application/json",
    "content-length": "15",
    "access-control-allow-origin": "*",
    "x-request-id": expect.stringMatching(/^req_[0-9a-z]{22}$/)
  })
})

it("holds other requests, and what is none, until there is a service", async () => {
  const { front, port } = await listening()
  const ready = ask(port, "GET", "/readyz")
  const posted = ask(port, "POST", "/v1/transfers", "a body")
  const bytes = connect(port, host)
  bytes.write("these are no HTTP\r\n\r\n")
  const said = text(bytes)
  const left = connect(port, host)
  left.write("GET /left HTTP/1.1\r\n\r\n")
  await soon()
  left.destroy()
  await soon()
  const seen: Array<string | undefined> = []
  front.server.on("request", ({ url }: IncomingMessage) => seen.push(url))
  front.serve(serving())
  expect((await ready).text).toBe("GET /readyz ")
  expect((await posted).text).toBe("POST /v1/transfers a body")
  expect(await said).toBe("?")
  expect((await ask(port, "GET", "/healthz")).text).toBe("GET /healthz ")
  expect(seen).toEqual(["/readyz", "/v1/transfers", "/healthz"])
})

it("refuses what it has held for ten seconds", async () => {
  const { front, port } = await listening()
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] })
  const held = once(front.server, "request")
  const answer = ask(port, "GET", "/readyz")
  await held
  vi.advanceTimersByTime(10_000)
  expect(await answer).toMatchObject({
    status: 503,
    reason: "the service is starting; try again shortly",
    text: `{"error":"the service is starting; try again shortly","code":"unavailable"}`
  })
})

it("is given to the service at its address, once; where the port is taken, the service is left to say so", async () => {
  const other = createServer().listen(0, host)
  await once(other, "listening")
  open.push(other)
  const taken = { host, port: (other.address() as AddressInfo).port }
  await Listener.prepare(taken)
  expect(Listener.take(taken).server.listening).toBe(false)

  const address = { host, port: 0 }
  await Listener.prepare(address)
  expect(Listener.take(taken).server.listening).toBe(false)
  const front = Listener.take(address)
  open.push(front.server)
  expect(front.server.listening).toBe(true)
  expect(Listener.take(address).server.listening).toBe(false)
})
