// The load generator, in a separate process. It uses keep-alive connections on bare sockets, so it needs less CPU than the system under test. In a
// closed loop, each connection sends its next call after the previous response. In an open loop, calls arrive at a fixed
// rate, regardless of responses.
import { connect } from "node:net"
import type { Socket } from "node:net"
import { callSequence } from "./calls.ts"
import { endWithParent, report } from "./processes.ts"

export interface Order {
  readonly port: number
  readonly method: "GET" | "POST"
  readonly path: string
  /** Headers in addition to the bearer token. */
  readonly headers: Readonly<Record<string, string>>
  /** A bearer token per caller. `callSequence` selects the caller of each call. */
  readonly keys: ReadonlyArray<string>
  readonly bodies: ReadonlyArray<string>
  readonly stream: boolean
  /** The end of a complete stream, at most 20 bytes. The default is the end of a chat stream. */
  readonly end?: string
  readonly connections: number
  readonly seconds: number
  /** The calls per second. If set, the loop is open. */
  readonly rate?: number
  /** How long to wait for open calls after the measurement, in seconds; 10 by default. */
  readonly patience?: number
  /** The number of calls after which the run ends early. */
  readonly calls?: number
}

/** The result of a run. Times are in milliseconds. */
export interface Outcome {
  /** The calls that succeeded within the measured time, per second. */
  readonly rate: number
  /** The number of successful calls, including calls that completed after the measured time. The database must have the same number. */
  readonly calls: number
  readonly byCaller: ReadonlyArray<number>
  readonly failures: number
  readonly wrong: ReadonlyArray<string>
  readonly p50: number
  readonly p99: number
  /** The median time to a body's first byte. */
  readonly first: number
  readonly sample: string
}

interface Call {
  readonly caller: number
  readonly arrived: number
  first: number
}

const now = (): number => performance.now()

const run = (order: Order): Promise<Outcome> =>
  new Promise((resolve) => {
    const requests = requestsOf(order)
    const kinds = order.bodies.length
    const nextRequest = callSequence(order.keys.length, kinds)
    const byCaller = order.keys.map(() => 0)
    // Set once all connections are open. Latencies therefore exclude the time to connect.
    let begun = 0
    let deadline = Number.POSITIVE_INFINITY
    const latencies: Array<number> = []
    const firsts: Array<number> = []
    const wrong: Array<string> = []
    // The arrival times of calls that wait for a free connection. `idle` contains the free connections.
    const queue: Array<number> = []
    let queued = 0
    const idle: Array<(arrived: number) => void> = []
    let issued = 0
    let open = 0
    let within = 0
    let calls = 0
    let failures = 0
    let sample = ""
    let ended = false
    const sockets = new Set<Socket>()
    const waiting: Array<() => void> = []

    const fail = (reason: string) => {
      failures++
      if (wrong.length < 3) wrong.push(reason)
    }

    const finish = () => {
      if (ended) return
      ended = true
      clearInterval(watch)
      for (const socket of sockets) socket.destroy()
      latencies.sort((a, b) => a - b)
      firsts.sort((a, b) => a - b)
      const at = (sorted: ReadonlyArray<number>, part: number) =>
        sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? Number.NaN
      resolve({
        rate: within / order.seconds,
        calls,
        byCaller,
        failures,
        wrong,
        p50: at(latencies, 0.5),
        p99: at(latencies, 0.99),
        first: at(firsts, 0.5),
        sample
      })
    }

    const over = () => now() >= deadline || (order.calls !== undefined && issued >= order.calls)
    const settled = () => {
      if (open === 0 && queue.length === queued && over()) finish()
    }
    // Calls that are still open at the end get a limited time to complete.
    const watch = setInterval(() => {
      if (now() > deadline + (order.patience ?? 10) * 1000) {
        failures += open + queue.length - queued
        wrong.push(`${open} calls got no response`)
        finish()
      } else settled()
    }, 20)

    const answered = (call: Call, status: number, body: string) => {
      open--
      const at = now()
      if (status >= 200 && status < 300 && (!order.stream || body.endsWith(order.end ?? "data: [DONE]\n\n"))) {
        calls++
        byCaller[call.caller]!++
        if (at <= deadline) within++
        latencies.push(at - call.arrived)
        firsts.push(call.first - call.arrived)
      } else fail(`${status} ${body.slice(0, 300)}`)
      if (sample === "") sample = body
    }

    const connection = () => {
      let call: Call | undefined
      const send = (arrived: number) => {
        issued++
        open++
        const which = nextRequest()
        call = { caller: Math.floor(which / kinds), arrived, first: 0 }
        const [head, body] = requests[which]!
        if (body === undefined) return void socket.write(head)
        socket.cork()
        socket.write(head)
        socket.write(body)
        socket.uncork()
      }
      /** Sends this connection's next call, if there is one. */
      const next = () => {
        if (order.rate !== undefined) {
          if (queued < queue.length) send(queue[queued++]!)
          else idle.push(send)
        } else if (!over()) send(now())
        if (over()) settled()
      }
      const reader = reading(
        // Only one body is buffered in full. The last bytes of the other bodies show that they are complete.
        () => sample === "",
        () => {
          if (call !== undefined && call.first === 0) call.first = now()
        },
        (status, body) => {
          const done = call!
          call = undefined
          answered(done, status, body)
          if (!ended) next()
        }
      )
      const socket = connect({ port: order.port, host: "127.0.0.1", noDelay: true })
      sockets.add(socket)
      socket.on("connect", () => {
        if (begun > 0) return next()
        waiting.push(next)
        if (waiting.length === order.connections) begin()
      })
      socket.on("data", reader)
      socket.on("error", () => undefined)
      socket.on("close", () => {
        sockets.delete(socket)
        const at = idle.indexOf(send)
        if (at >= 0) idle.splice(at, 1)
        if (ended) return
        if (call !== undefined) {
          open--
          fail("the connection was closed during a call")
        } else if (calls === 0) fail("the connection was refused")
        if (failures > 1000) finish()
        else if (now() < deadline) setTimeout(connection, 10)
      })
    }
    const begin = () => {
      begun = now()
      deadline = begun + order.seconds * 1000
      for (const next of waiting) next()
      if (order.rate !== undefined) arrive(order.rate)
    }

    const arrive = (rate: number) => {
      let arrivals = 0
      const tick = () => {
        const at = now()
        if (at >= deadline || ended) return
        const due = Math.min(((at - begun) / 1000) * rate, order.calls ?? Number.POSITIVE_INFINITY)
        for (; arrivals < due; arrivals++) {
          const send = idle.pop()
          // Without a free connection, the call waits, and its latency includes the wait. A slow server therefore cannot reduce the arrival rate.
          if (send === undefined) queue.push(at)
          else send(at)
        }
        setTimeout(tick, 1)
      }
      tick()
    }
    // Connections are opened in stages, because a server's queue of unaccepted connections is limited.
    for (let i = 0; i < order.connections; i++) setTimeout(connection, Math.floor(i / 100) * 10)
  })

/** The minimum size of a body that is shared between callers, in bytes. A shorter body is sent in the same buffer as its head. */
const longBody = 4_000

/** Builds the bytes of each possible call, indexed by `callSequence`. */
const requestsOf = (order: Order): ReadonlyArray<readonly [head: Buffer, body: Buffer | undefined]> => {
  const bodies = order.bodies.map((body) => Buffer.from(body))
  return order.keys.flatMap((key) => {
    const headers = Object.entries({
      "content-type": "application/json",
      authorization: `Bearer ${key}`,
      ...order.headers
    })
    return bodies.map((body) => {
      const head = Buffer.from(
        `${order.method} ${order.path} HTTP/1.1\r\nhost: 127.0.0.1:${order.port}\r\n${headers
          .map(([name, value]) => `${name}: ${value}\r\n`)
          .join("")}content-length: ${body.length}\r\n\r\n`
      )
      return body.length < longBody ? ([Buffer.concat([head, body]), undefined] as const) : ([head, body] as const)
    })
  })
}

/**
 * Creates a parser for a connection's responses. It calls `done` with the last 20 bytes of each body, or with the complete body if the response is an
 * error or `whole` returns true.
 */
const reading = (whole: () => boolean, first: () => void, done: (status: number, body: string) => void) => {
  let pending: Buffer | undefined
  let state: "head" | "length" | "size" | "data" | "trailer" = "head"
  let status = 0
  let left = 0
  let keep = false
  let body = ""

  const take = (piece: Buffer) => {
    first()
    const text = keep || status >= 300 ? piece.toString() : piece.toString("latin1", Math.max(0, piece.length - 20))
    body = keep || status >= 300 ? body + text : (body + text).slice(-20)
  }
  const end = () => {
    state = "head"
    done(status, body)
  }

  return (data: Buffer) => {
    const buffer = pending === undefined ? data : Buffer.concat([pending, data])
    pending = undefined
    let at = 0
    while (at < buffer.length) {
      if (state === "head") {
        const close = buffer.indexOf("\r\n\r\n", at)
        if (close < 0) break
        const text = buffer.toString("latin1", at, close).toLowerCase()
        at = close + 4
        status = Number(text.slice(9, 12))
        body = ""
        keep = whole()
        const length = text.indexOf("\r\ncontent-length:")
        if (length >= 0) {
          left = parseInt(text.slice(length + 17), 10)
          state = "length"
          if (left === 0) end()
        } else state = "size"
      } else if (state === "length") {
        const piece = buffer.subarray(at, at + left)
        at += piece.length
        left -= piece.length
        take(piece)
        if (left === 0) end()
      } else if (state === "size") {
        const line = buffer.indexOf("\r\n", at)
        if (line < 0) break
        left = parseInt(buffer.toString("latin1", at, line), 16)
        at = line + 2
        state = left === 0 ? "trailer" : "data"
      } else if (state === "data") {
        const piece = buffer.subarray(at, at + left)
        if (piece.length > 0) take(piece)
        at += piece.length
        left -= piece.length
        if (left > 0) continue
        if (buffer.length < at + 2) break
        at += 2
        state = "size"
      } else {
        if (buffer.length < at + 2) break
        at += 2
        end()
      }
    }
    if (at < buffer.length) pending = buffer.subarray(at)
  }
}

endWithParent()
process.on("message", (order: Order) => void run(order).then(report))
report({ ready: true })
