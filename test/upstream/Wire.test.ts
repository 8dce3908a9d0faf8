/** How long an upstream may take to the final head of its answer, whatever it sends before that. */
import { expect, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { createServer } from "node:net"
import type { AddressInfo } from "node:net"
import * as Wire from "../../src/upstream/wire/Wire.ts"

const informational = "HTTP/1.1 102 Processing\r\n\r\n"
const final = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"

/** A server that sends an informational head every 50 ms, and the final one instead of the last of `heads`. It keeps what happened. */
const vendor = (heads: number) =>
  Effect.acquireRelease(
    Effect.async<{ readonly url: string; readonly seen: ReadonlyArray<string>; readonly close: () => void }>(
      (resume) => {
        const seen: Array<string> = []
        const server = createServer((socket) => {
          let sent = 0
          let timer: NodeJS.Timeout | undefined
          socket.once("data", () => {
            seen.push("request")
            timer = setInterval(() => socket.write(++sent < heads ? informational : final), 50)
          })
          socket.on("error", () => {})
          socket.on("close", () => {
            // undici opens a connection anew and asks nothing on it.
            if (timer !== undefined) seen.push("closed")
            clearInterval(timer)
          })
        }).listen(0, "127.0.0.1", () =>
          resume(
            Effect.succeed({
              url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
              seen,
              close: () => server.close()
            })
          )
        )
      }
    ),
    ({ close }) => Effect.sync(close)
  )

const request = { method: "GET", path: "/", headers: {} } as const
const ways: Record<string, (wire: Wire.Wire) => Effect.Effect<{ readonly status: number }, Wire.Unreachable>> = {
  whole: (wire) => wire.exchange(request, { limit: 100 }),
  streaming: (wire) => wire.open(request)
}

for (const [name, send] of Object.entries(ways)) {
  it.live(`${name}: an upstream that sends informational heads for ever is given up and cut off`, () =>
    Effect.gen(function* () {
      const { seen, url } = yield* vendor(Number.POSITIVE_INFINITY)
      const wire = yield* Wire.make({ base_url: url, silence_ms_max: 500 })
      const failure = yield* Effect.flip(send(wire))
      expect(failure).toMatchObject({
        _tag: "Unreachable",
        reason: "no final head within 500 ms of an informational one"
      })
      yield* Effect.promise(() => expect.poll(() => seen).toEqual(["request", "closed"]))
    }).pipe(Effect.scoped)
  )

  it.live(`${name}: one that sends some of them and then its answer is heard`, () =>
    Effect.gen(function* () {
      const { seen, url } = yield* vendor(4)
      const wire = yield* Wire.make({ base_url: url, silence_ms_max: 5_000 })
      expect((yield* send(wire)).status).toBe(200)
      expect(seen).toEqual(["request"])
    }).pipe(Effect.scoped)
  )
}

const abortable: Record<string, (wire: Wire.Wire) => Effect.Effect<unknown, Wire.Unreachable>> = {
  whole: (wire) => wire.exchange(request, { limit: 100, read_on: false }),
  streaming: (wire) => wire.open(request, false)
}

for (const [name, send] of Object.entries(abortable)) {
  it.live(`${name}: a caller who leaves tells nothing about the upstream, an upstream without an answer does`, () =>
    Effect.gen(function* () {
      const { seen, url } = yield* vendor(Number.POSITIVE_INFINITY)
      const statuses: Array<number> = []
      const observe = (status: number) => void statuses.push(status)
      const patient = yield* Wire.make({ base_url: url, observe, silence_ms_max: 60_000 })
      const caller = yield* Effect.fork(send(patient))
      yield* Effect.promise(() => expect.poll(() => seen).toEqual(["request"]))
      yield* Fiber.interrupt(caller)
      yield* Effect.promise(() => expect.poll(() => seen).toEqual(["request", "closed"]))
      expect(statuses).toEqual([])
      const impatient = yield* Wire.make({ base_url: url, observe, silence_ms_max: 500 })
      yield* Effect.flip(send(impatient))
      yield* Effect.promise(() => expect.poll(() => statuses).toEqual([0]))
    }).pipe(Effect.scoped)
  )
}
