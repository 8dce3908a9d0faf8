/** Responses that are read page by page, over a real socket. */
import type { HttpServerRequest } from "@effect/platform"
import { Effect, Logger } from "effect"
import { createServer, request as send } from "node:http"
import type { IncomingMessage, Server } from "node:http"
import type { AddressInfo } from "node:net"
import type { Readable } from "node:stream"
import { pipeline } from "node:stream"
import { afterEach, describe, expect, it } from "vitest"
import { paged } from "../../src/http/transport/Paged.ts"

let server: Server | undefined
afterEach(() => {
  server?.closeAllConnections()
  server?.close()
})

interface Watched {
  reads: number
  interrupted: number
  closed: number
}

/** Serves the pages, and returns what happens to them. */
const serve = async (next: (watched: Watched) => Effect.Effect<string | undefined>) => {
  const watched: Watched = { reads: 0, interrupted: 0, closed: 0 }
  const page = Effect.suspend(() => {
    watched.reads++
    return next(watched)
  }).pipe(Effect.onInterrupt(() => Effect.sync(() => void watched.interrupted++)))
  const one = createServer((incoming, response) => {
    const platform = { source: incoming, resolvedResponse: response } as unknown as HttpServerRequest.HttpServerRequest
    const answer = Effect.runSync(
      paged(platform, { "content-type": "text/plain" }, page, () => void watched.closed++).pipe(
        Effect.provide(Logger.remove(Logger.defaultLogger))
      )
    )
    const { body } = answer.body as unknown as { readonly body: Readable }
    response.writeHead(answer.status, answer.headers)
    pipeline(body, response, () => {})
  })
  server = one
  await new Promise<void>((resolve) => one.listen(0, "127.0.0.1", resolve))
  const { port } = one.address() as AddressInfo
  const get = () =>
    new Promise<IncomingMessage>((resolve, reject) => {
      send({ host: "127.0.0.1", port }, resolve).on("error", reject).end()
    })
  return { watched, get }
}

const textOf = async (response: IncomingMessage): Promise<string> => {
  let text = ""
  for await (const chunk of response) text += String(chunk)
  return text
}

describe("a response of pages", () => {
  it("has all pages in order, and ends", async () => {
    const { get, watched } = await serve(({ reads }) =>
      Effect.delay(Effect.succeed(reads > 5 ? undefined : `page ${reads}\n`), "1 millis")
    )
    expect(await textOf(await get())).toBe("page 1\npage 2\npage 3\npage 4\npage 5\n")
    await expect.poll(() => watched.closed).toBe(1)
    expect(watched).toEqual({ reads: 6, interrupted: 0, closed: 1 })
  })

  it("is not read on while its client does not read", async () => {
    const page = "x".repeat(1024 * 1024)
    const { get, watched } = await serve(({ reads }) => Effect.succeed(reads > 200 ? undefined : page))
    const response = await get()
    response.pause()
    // The sockets' buffers take some pages.
    let before = -1
    await expect
      .poll(
        () => {
          const isStill = before === watched.reads
          before = watched.reads
          return isStill
        },
        { interval: 200, timeout: 20_000 }
      )
      .toBe(true)
    expect(watched.reads).toBeLessThan(40)
    expect(watched.closed).toBe(0)
    expect((await textOf(response)).length).toBe(200 * page.length)
    expect(watched.reads).toBe(201)
  })

  it("stops, and interrupts the page that is being read, when its client disconnects", async () => {
    const { get, watched } = await serve(({ reads }) => (reads === 1 ? Effect.succeed("first") : Effect.never))
    const response = await get()
    response.on("error", () => {})
    response.once("data", () => response.destroy())
    await expect.poll(() => watched).toEqual({ reads: 2, interrupted: 1, closed: 1 })
  })

  it("is broken off, not ended, if a page cannot be read", async () => {
    const { get, watched } = await serve(({ reads }) =>
      reads === 1 ? Effect.succeed("first") : Effect.delay(Effect.die(new Error("no database")), "100 millis")
    )
    const response = await get()
    await expect(textOf(response)).rejects.toThrow("aborted")
    await expect.poll(() => watched.closed).toBe(1)
  })

  it("closes at once if its client has left before", async () => {
    let closed = 0
    const gone = { closed: true, destroyed: true, socket: null, req: { socket: { destroyed: true } } }
    const source = { on: () => {} }
    const request = { source, resolvedResponse: gone } as unknown as HttpServerRequest.HttpServerRequest
    await Effect.runPromise(paged(request, {}, Effect.succeed("x"), () => void closed++))
    await expect.poll(() => closed).toBe(1)
  })
})
