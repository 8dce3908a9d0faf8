/** What the sandbox's outside services share: an exchange with a caller, the faults it may be struck by, and the list of calls. */
import type { IncomingMessage, ServerResponse } from "node:http"

export const services = [
  "chat",
  "images",
  "search",
  "speech",
  "transcription",
  "media",
  "decisions",
  "payments",
  "mail",
  "identity"
] as const
export type ServiceName = (typeof services)[number]

/** What is to happen to the next `times` calls of a service. */
export interface Fault {
  readonly service: ServiceName
  readonly status?: number
  readonly body?: unknown
  readonly headers?: Readonly<Record<string, string>>
  readonly delay_ms?: number
  /** Between the pieces of a stream. */
  readonly chunk_delay_ms?: number
  /** Close the connection; of a stream, after its first pieces. */
  readonly drop?: boolean
  times: number
}

export interface Call {
  readonly service: ServiceName
  readonly path: string
  readonly body: unknown
  /** The caller left before its answer was complete. */
  aborted: boolean
}

/** A request whose body has been read, and the way to answer it. */
export interface Exchange {
  readonly method: string
  readonly path: string
  readonly query: URLSearchParams
  readonly headers: IncomingMessage["headers"]
  /** Parsed, where it is JSON; else as text. */
  readonly body: unknown
  readonly response: ServerResponse
}

/** An outside service: what it does with a call to a path below its own. `fault` is what is left to be obeyed by a stream. */
export type Service = (exchange: Exchange, fault: Fault | undefined) => Promise<void> | void

const callsMax = 10_000

export class Outside {
  private faults: Array<Fault> = []
  private calls: Array<Call> = []

  strike(fault: Fault): void {
    this.faults.push(fault)
  }

  forgetFaults(): void {
    this.faults = []
  }

  /** Newest first. */
  listCalls(service: string | undefined, limit: number): ReadonlyArray<Call> {
    const found: Array<Call> = []
    for (let i = this.calls.length - 1; i >= 0 && found.length < limit; i--) {
      if (service === undefined || this.calls[i]!.service === service) found.push(this.calls[i]!)
    }
    return found
  }

  forgetCalls(): void {
    this.calls = []
  }

  /** Lists the call, lets a fault have its way with it, and otherwise hands it to the service. */
  async receive(name: ServiceName, exchange: Exchange, service: Service): Promise<void> {
    const { body, path, response } = exchange
    const call: Call = { service: name, path, body, aborted: false }
    if (this.calls.push(call) > callsMax * 2) this.calls = this.calls.slice(-callsMax)
    response.once("close", () => (call.aborted = !response.writableFinished))

    const fault = this.next(name)
    if (fault?.delay_ms !== undefined) await pause(fault.delay_ms)
    if (fault?.status !== undefined) {
      const text = typeof fault.body === "string" ? fault.body : JSON.stringify(fault.body ?? { error: "fault" })
      response.writeHead(fault.status, { "content-type": "application/json", ...fault.headers }).end(text)
      return
    }
    if (fault?.body !== undefined) {
      response.writeHead(200, { "content-type": "application/json", ...fault.headers })
      response.end(typeof fault.body === "string" ? fault.body : JSON.stringify(fault.body))
      return
    }
    const streams = typeof body === "object" && body !== null && (body as { stream?: unknown }).stream === true
    if (fault?.drop === true && !streams) {
      response.destroy()
      return
    }
    await service(exchange, fault)
  }

  private next(name: ServiceName): Fault | undefined {
    const at = this.faults.findIndex((fault) => fault.service === name)
    const fault = this.faults[at]
    if (fault !== undefined && --fault.times <= 0) this.faults.splice(at, 1)
    return fault
  }
}

export const pause = (millis: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, millis))

export const json = (response: ServerResponse, status: number, body: unknown): void => {
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body))
}
