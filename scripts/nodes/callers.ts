// Simulates callers. Each caller makes one call after another, regardless of the outcome.
import { sleep } from "../bench/processes.ts"

/** The pause after each call, in milliseconds. */
const pause = 20

/** The call timeout in milliseconds, longer than any wait in the service. */
const callTimeout = 30_000

export class Callers {
  /** The number of successful calls. */
  acknowledged = 0
  /** The number of calls without a successful response. They may have been charged. */
  unanswered = 0
  readonly #url: string
  readonly #keys: ReadonlyArray<string>
  readonly #body: string
  #counts = new Map<string, number>()
  #last = ""
  #isOver = false
  #isResting = false
  readonly #abreast: number
  #running: Promise<unknown> = Promise.resolve()

  /** Creates the callers. `abreast` is the number of concurrent callers. */
  constructor(url: string, keys: ReadonlyArray<string>, body: string, abreast = 24) {
    this.#abreast = abreast
    this.#url = url
    this.#keys = keys
    this.#body = body
  }

  begin(): void {
    this.#running = Promise.all(
      Array.from({ length: this.#abreast }, (_, i) => this.#call(this.#keys[i % this.#keys.length]!))
    )
  }

  /** Pauses new calls until `goOn` is called. */
  rest(): void {
    this.#isResting = true
  }

  goOn(): void {
    this.#isResting = false
  }

  async end(): Promise<void> {
    this.#isOver = true
    await this.#running
  }

  /** Returns whether the most recent call succeeded. */
  isServed(): boolean {
    return this.#last === "200"
  }

  /** Returns and resets the outcome counts. */
  takeCounts(): string {
    const counts = [...this.#counts].toSorted(([a], [b]) => a.localeCompare(b))
    this.#counts = new Map()
    return counts.map(([what, count]) => `${what}: ${count}`).join(", ")
  }

  async #call(key: string): Promise<void> {
    while (!this.#isOver) {
      if (this.#isResting) {
        await sleep(pause)
        continue
      }
      const what = await this.#answer(key)
      this.#counts.set(what, (this.#counts.get(what) ?? 0) + 1)
      this.#last = what
      if (what === "200") this.acknowledged++
      else this.unanswered++
      await sleep(pause)
    }
  }

  async #answer(key: string): Promise<string> {
    try {
      const response = await fetch(this.#url, {
        method: "POST",
        headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
        body: this.#body,
        signal: AbortSignal.timeout(callTimeout)
      })
      const text = await response.text()
      if (response.status === 200) return "200"
      // The balancer's own responses are not JSON.
      const code = /"code": ?"(\w+)"/.exec(text)?.[1]
      return `${response.status}${code === undefined ? " from the balancer" : ` ${code}`}`
    } catch {
      return "no response"
    }
  }
}
