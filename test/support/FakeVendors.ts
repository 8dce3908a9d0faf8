/** Fake chat vendors in one server, each at a path with its name. A vendor gives the default response unless the test has set the next ones. */
import { once } from "node:events"
import { createServer } from "node:http"
import type { ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"

export interface Asked {
  readonly vendor: string
  readonly headers: NodeJS.Dict<string | ReadonlyArray<string>>
  // oxlint-disable-next-line typescript/no-explicit-any -- tests inspect requests of any shape
  readonly body: any
}

/** The response to one call. It begins after `held` resolves. If `broken` is set, the connection closes without a response. */
export interface Turn {
  readonly status?: number
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: object | string
  readonly held?: Promise<void>
  readonly broken?: boolean
}

export const usage = { prompt_tokens: 10, completion_tokens: 5 }

/** The default response, which names its vendor. */
export const answerOf = (vendor: string) => ({
  choices: [{ index: 0, message: { role: "assistant", content: `by ${vendor}` }, finish_reason: "stop" }],
  usage
})

const streamOf = (vendor: string): string =>
  [
    { choices: [{ index: 0, delta: { content: `by ${vendor}` }, finish_reason: "stop" }] },
    { choices: [], usage: { ...usage, total_tokens: 15 } }
  ]
    .map((event) => `data: ${JSON.stringify(event)}\n\n`)
    .join("") + "data: [DONE]\n\n"

export class FakeVendors {
  readonly origin: string
  /** The received requests, oldest first. */
  readonly asked: Array<Asked> = []
  readonly #turns = new Map<string, Array<Turn>>()
  readonly close: () => void

  private constructor(origin: string, close: () => void) {
    this.origin = origin
    this.close = close
  }

  static async start(): Promise<FakeVendors> {
    const server = createServer((request, response) => {
      let text = ""
      request.setEncoding("utf8").on("data", (piece: string) => (text += piece))
      request.on("end", () => {
        const vendor = request.url!.split("/")[1]!
        const asked = { vendor, headers: request.headers, body: JSON.parse(text) as Asked["body"] }
        vendors.asked.push(asked)
        void vendors.#answer(asked, response)
      })
    })
    server.listen(0, "127.0.0.1")
    await once(server, "listening")
    const vendors = new FakeVendors(`http://127.0.0.1:${(server.address() as AddressInfo).port}`, () => {
      server.closeAllConnections()
      server.close()
    })
    return vendors
  }

  /** Queues the responses to the next calls to this vendor. */
  next(vendor: string, ...turns: ReadonlyArray<Turn>): void {
    this.#turns.set(vendor, [...(this.#turns.get(vendor) ?? []), ...turns])
  }

  /** Clears the received requests and the queued responses. */
  forget(): void {
    this.asked.length = 0
    this.#turns.clear()
  }

  /** The called vendors in order. */
  get order(): ReadonlyArray<string> {
    return this.asked.map(({ vendor }) => vendor)
  }

  async #answer({ body, vendor }: Asked, response: ServerResponse): Promise<void> {
    const turn = this.#turns.get(vendor)?.shift() ?? {}
    await turn.held
    if (turn.broken === true) return void response.destroy()
    const isStream = body.stream === true && turn.body === undefined && (turn.status ?? 200) === 200
    const type = isStream ? "text/event-stream" : "application/json"
    response.writeHead(turn.status ?? 200, { "content-type": type, ...turn.headers })
    const answer = turn.body ?? (isStream ? streamOf(vendor) : answerOf(vendor))
    response.end(typeof answer === "string" ? answer : JSON.stringify(answer))
  }
}
