/** Reads a stream of server-sent events, like a page. */
import type { Service } from "./Service.ts"

export interface Received {
  readonly event: string
  readonly id: string | undefined
  // oxlint-disable-next-line typescript/no-explicit-any -- tests inspect events of any shape
  readonly data: any
}

export class Events {
  readonly received: Array<Received> = []
  readonly response: Response
  private readonly abort: AbortController
  /** Whether the stream has ended. */
  over = false

  private constructor(response: Response, abort: AbortController) {
    this.response = response
    this.abort = abort
    void this.read()
  }

  static async open(
    service: Pick<Service, "url">,
    token: string,
    after?: string,
    path = "/v1/events"
  ): Promise<Events> {
    const abort = new AbortController()
    const headers = { authorization: `Bearer ${token}`, ...(after !== undefined && { "last-event-id": after }) }
    return new Events(await fetch(service.url + path, { headers, signal: abort.signal }), abort)
  }

  private async read(): Promise<void> {
    let text = ""
    try {
      for await (const piece of this.response.body!.pipeThrough(new TextDecoderStream())) {
        const events = (text + piece).split("\n\n")
        text = events.pop()!
        for (const event of events) this.take(event)
      }
    } catch {
      // The test closed the stream.
    }
    this.over = true
  }

  private take(text: string): void {
    const fields = Object.fromEntries(
      text.split("\n").map((line) => [line.slice(0, line.indexOf(":")), line.slice(line.indexOf(":") + 2)])
    )
    if (fields["event"] === undefined) return
    this.received.push({ event: fields["event"], id: fields["id"], data: JSON.parse(fields["data"]!) })
  }

  close(): void {
    this.abort.abort()
  }

  of(event: string): ReadonlyArray<Received> {
    return this.received.filter((one) => one.event === event)
  }

  /** Waits for `count` events of a type and returns them. */
  async until(event: string, count = 1, seconds = 15): Promise<ReadonlyArray<Received>> {
    for (let i = 0; i < seconds * 20; i++) {
      if (this.of(event).length >= count) return this.of(event)
      if (this.over) break
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
    const seen = this.received.map((one) => one.event).slice(-20)
    throw new Error(`${count} of ${event} did not come, but ${this.of(event).length}: ${seen.join(", ")}`)
  }
}
