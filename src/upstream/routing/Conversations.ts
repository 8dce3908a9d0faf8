/**
 * Remembers the upstream that last served each conversation, because its prompt cache may contain the start of the conversation. Each node keeps a
 * limited number of conversations in memory.
 */

const keptMax = 10_000
/** In milliseconds. Prompt caches last for minutes. */
const lifetime = 60 * 60_000

interface Answered {
  readonly upstream: string
  readonly at: number
}

export class Conversations {
  /** The conversations, least recently served first. */
  readonly #answered = new Map<string, Answered>()

  last(conversation: string, now: number): string | undefined {
    const found = this.#answered.get(conversation)
    return found === undefined || now - found.at > lifetime ? undefined : found.upstream
  }

  answered(conversation: string, upstream: string, now: number): void {
    this.#answered.delete(conversation)
    this.#answered.set(conversation, { upstream, at: now })
    if (this.#answered.size <= keptMax) return
    for (const oldest of this.#answered.keys()) {
      this.#answered.delete(oldest)
      return
    }
  }
}
