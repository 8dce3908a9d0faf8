/**
 * Answers that their client does not read. What a client has not taken waits in memory, and the upstream of a stream waits behind it. A
 * connection on which nothing of that moves for a while is ended, and with it the call: as if the client had left (`upstream/wire/ByteStream`).
 * A client that waits for an answer, or for the next event of a stream, is left alone however long that takes.
 */
import { Context, Layer, Schema } from "effect"
import type { Server, ServerResponse } from "node:http"
import type { Socket } from "node:net"
import { Seconds } from "../../kernel/Setting.ts"

export const AnswerSettings = Schema.Struct({
  /** How long a client may take nothing of what waits for it, in milliseconds. */
  unread_ms: Schema.optionalWith(Seconds, { default: () => 180_000 }).pipe(Schema.fromKey("unread_seconds"))
})
export interface AnswerSettings extends Schema.Schema.Type<typeof AnswerSettings> {}

const presets = Schema.decodeSync(AnswerSettings)({})

export class Unread extends Context.Reference<Unread>()("tollgate/http/Unread", {
  defaultValue: () => presets.unread_ms
}) {
  static readonly layer = ({ unread_ms }: AnswerSettings) => Layer.succeed(Unread, unread_ms)
}

/** Ends connections of a server whose client reads nothing for so many milliseconds. */
export const endUnread = (server: Server, unread_ms: number): void => {
  // Node's timer of a socket starts again with whatever is read or written on it.
  server.setTimeout(unread_ms, (socket: Socket) => {
    // One without a request is idle: node ends it by the same timer.
    if (!isAnswering(socket)) socket.destroy()
    else if (socket.writableLength === 0) socket.setTimeout(unread_ms)
    // Otherwise the system would go on to offer what it holds.
    else socket.resetAndDestroy()
  })
}

/** Whether a request on it has no whole answer yet. Node knows it by this field alone. */
const isAnswering = (socket: Socket): boolean =>
  ((socket as { readonly _httpMessage?: ServerResponse | null })._httpMessage ?? null) !== null
