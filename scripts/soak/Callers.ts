/**
 * Simulates callers, each with its own key and connection. Together they call at a given rate, and some calls are streams. One in twenty-five callers
 * disconnects early in half of its calls. All of these callers belong to one user, because the other users' responses are compared with the
 * records. An additional caller calls the vendor directly, between two disk writes, to measure the machine's load.
 */
import { open } from "node:fs/promises"
import { Agent, request } from "node:http"
import { join } from "node:path"
import type { Deployment } from "./Deployment.ts"

/** The callers' observations since the previous reading. */
export interface Seen {
  readonly latencies: Array<number>
  /** The durations of direct calls to the vendor. */
  readonly direct: Array<number>
  readonly counts: Map<string, number>
}

const streamed = 0.3
const leaving = 0.5

/** The interval between direct calls to the vendor, in milliseconds. */
const directPause = 250
const page = Buffer.alloc(4_096)

const body = (stream: boolean) =>
  JSON.stringify({
    model: "m",
    messages: [{ role: "user", content: "one two three four" }],
    max_tokens: 50,
    ...(stream && { stream })
  })
const bodies = { whole: body(false), stream: body(true) }

export class Callers {
  /** The number of complete, successful calls from callers that never disconnect early. */
  acknowledged = 0
  private seen: Seen = { latencies: [], direct: [], counts: new Map() }
  private over = false
  /** Set while new calls are on hold. */
  private held: Promise<void> | undefined
  private readonly loops: Array<Promise<void>> = []
  private readonly deployment: Deployment
  private rate: number | undefined

  constructor(deployment: Deployment) {
    this.deployment = deployment
  }

  /** Sets the total calls per second; `undefined` means as many as possible. */
  at(rate: number | undefined): void {
    this.rate = rate
  }

  begin(callers: number): void {
    const { keys } = this.deployment
    for (let index = 0; index < callers; index++) this.loops.push(this.loop(keys[index]!))
    this.loops.push(this.direct())
  }

  /** Puts new calls on hold until `work` has finished. */
  async holding(work: () => Promise<void>): Promise<void> {
    this.held = work().finally(() => (this.held = undefined))
    await this.held
  }

  take(): Seen {
    const { seen } = this
    this.seen = { latencies: [], direct: [], counts: new Map() }
    return seen
  }

  async end(): Promise<void> {
    this.over = true
    await Promise.all(this.loops)
  }

  private async loop(key: string): Promise<void> {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    const callers = this.deployment.keys.length
    await pause(Math.random() * (this.rate === undefined ? 0 : (1_000 * callers) / this.rate))
    while (!this.over) {
      await this.held
      const began = performance.now()
      const outcome = await this.call(agent, key)
      this.seen.counts.set(outcome, (this.seen.counts.get(outcome) ?? 0) + 1)
      const took = performance.now() - began
      if (outcome === "200") this.seen.latencies.push(took)
      // A caller that cannot reach the service retries after a short pause.
      if (outcome === "not there") await pause(200 + Math.random() * 300)
      if (this.rate !== undefined) await pause(2 * Math.random() * ((1_000 * callers) / this.rate) - took)
    }
    agent.destroy()
  }

  private async direct(): Promise<void> {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    const { port } = new URL(this.deployment.vendor)
    const file = await open(join(this.deployment.folder, "direct"), "w")
    const write = async () => {
      await file.write(page, 0, page.length, 0)
      await file.datasync()
    }
    while (!this.over) {
      const began = performance.now()
      await write()
      const status = await new Promise((resolve) => {
        const sent = request({ agent, port, host: "127.0.0.1", method: "POST", path: "/v1/chat/completions" })
        sent.on("response", (response) => response.resume().on("close", () => resolve(response.statusCode)))
        sent.on("error", resolve)
        sent.setTimeout(2_000, () => sent.destroy(new Error("silence")))
        sent.end(bodies.whole)
      })
      await write()
      if (status === 200) this.seen.direct.push(performance.now() - began)
      await pause(directPause)
    }
    agent.destroy()
    await file.close()
  }

  private call(agent: Agent, key: string): Promise<string> {
    const isStream = Math.random() < streamed
    const isLeaver = this.deployment.leavers.has(key)
    const leaves = isLeaver && Math.random() < leaving
    const content = isStream ? bodies.stream : bodies.whole
    return new Promise((resolve) => {
      const sent = request(
        {
          agent,
          port: this.deployment.port,
          host: "127.0.0.1",
          method: "POST",
          path: "/v1/chat/completions",
          headers: {
            authorization: `Bearer ${key}`,
            "content-type": "application/json",
            "content-length": content.length
          }
        },
        (response) => {
          let text = ""
          response.on("data", (bytes: Buffer) => (text += bytes.toString("latin1")))
          response.on("error", () => resolve("cut"))
          response.on("end", () => {
            const isWhole =
              response.statusCode === 200 && (!isStream || (text.includes("[DONE]") && !text.includes('"error"')))
            if (isWhole && !isLeaver) this.acknowledged++
            resolve(response.statusCode === 200 && !isWhole ? "failed in its stream" : String(response.statusCode))
          })
          response.on("close", () => resolve("cut"))
        }
      )
      sent.on("error", () => resolve(leaves ? "left" : "not there"))
      if (leaves) setTimeout(() => sent.destroy(), Math.random() * 40)
      sent.end(content)
    })
  }
}

const pause = (millis: number) =>
  millis <= 0 ? Promise.resolve() : new Promise<void>((resolve) => setTimeout(resolve, millis))
