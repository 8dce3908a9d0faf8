/**
 * Requests and replies between the owner and a worker, over the channel that Node opens to a child process. Values are JSON. Messages arrive in the
 * order in which they were sent, and none is lost while both processes live.
 */
export interface Channel {
  /** Sends a request. Rejects if the other process refuses it, ends, or does not reply within `patience` milliseconds. */
  readonly ask: (subject: string, value: unknown, patience: number) => Promise<unknown>
  /** Takes a message from the other process. Messages of other kinds are ignored. */
  readonly receive: (message: unknown) => void
  /** Rejects all open requests, because the other process has ended. */
  readonly close: () => void
}

/** The other process has ended, or ends while the request is open. */
export class ProcessEnded extends Error {
  constructor() {
    super("the other process has ended")
  }
}

/** Handles requests on a subject. The returned or resolved value is the reply. */
export type Handler = (value: unknown) => unknown

interface Message {
  readonly tollgate: "ask" | "reply" | "refusal"
  readonly id: number
  readonly subject: string
  readonly value: unknown
}

const isMessage = (message: unknown): message is Message =>
  typeof message === "object" && message !== null && "tollgate" in message

interface Open {
  readonly resolve: (value: unknown) => void
  readonly reject: (reason: Error) => void
  readonly timer: NodeJS.Timeout
}

/** `send` may throw or ignore the message once the other process has ended. */
export const make = (
  send: (message: Message) => void,
  handlerOf: (subject: string) => Handler | undefined
): Channel => {
  const open = new Map<number, Open>()
  let last = 0
  let closed = false

  const settle = (id: number, then: (one: Open) => void) => {
    const one = open.get(id)
    if (one === undefined) return
    open.delete(id)
    clearTimeout(one.timer)
    then(one)
  }

  const serve = async ({ id, subject, value }: Message): Promise<void> => {
    let reply: Message
    try {
      const handler = handlerOf(subject)
      if (handler === undefined) throw new Error(`this process is not ready for ${subject}`)
      reply = { tollgate: "reply", id, subject, value: await handler(value) }
    } catch (error) {
      reply = { tollgate: "refusal", id, subject, value: error instanceof Error ? error.message : String(error) }
    }
    if (closed) return
    try {
      send(reply)
    } catch {
      // The other process has just ended.
    }
  }

  return {
    ask: (subject, value, patience) =>
      new Promise((resolve, reject) => {
        if (closed) return reject(new ProcessEnded())
        const id = ++last
        const timer = setTimeout(
          () => settle(id, (one) => one.reject(new Error(`no reply about ${subject} within ${patience} ms`))),
          patience
        )
        open.set(id, { resolve, reject, timer })
        try {
          send({ tollgate: "ask", id, subject, value })
        } catch (error) {
          settle(id, (one) => one.reject(error instanceof Error ? error : new Error(String(error))))
        }
      }),
    receive: (message) => {
      if (!isMessage(message)) return
      if (message.tollgate === "ask") return void serve(message)
      settle(message.id, ({ reject, resolve }) =>
        message.tollgate === "reply" ? resolve(message.value) : reject(new Error(String(message.value)))
      )
    },
    close: () => {
      closed = true
      for (const id of open.keys()) settle(id, (one) => one.reject(new ProcessEnded()))
    }
  }
}
