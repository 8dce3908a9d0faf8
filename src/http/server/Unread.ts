/**
 * Responses that a client does not read. Unread bytes use memory, and the upstream of a stream stays open. If no byte moves for a while, the
 * connection is closed and its call ends as if the client had left (`upstream/wire/ByteStream`). A client that waits for a response, or for a
 * stream's next event, has no limit.
 */
import { Context, Layer, Schema } from "effect"
import type { Server, ServerResponse } from "node:http"
import type { Socket } from "node:net"
import { Seconds } from "../../kernel/Setting.ts"

export const AnswerSettings = Schema.Struct({
  /** The maximum time that a client may leave bytes unread, in milliseconds. */
  unread_ms: Schema.optionalWith(Seconds, { default: () => 180_000 }).pipe(Schema.fromKey("unread_seconds"))
})
export interface AnswerSettings extends Schema.Schema.Type<typeof AnswerSettings> {}

const presets = Schema.decodeSync(AnswerSettings)({})

export class Unread extends Context.Reference<Unread>()("tollgate/http/Unread", {
  defaultValue: () => presets.unread_ms
}) {
  static readonly layer = ({ unread_ms }: AnswerSettings) => Layer.succeed(Unread, unread_ms)
}

/** Closes a server's connections if their client does not read pending bytes for this many milliseconds. */
export const endUnread = (server: Server, unread_ms: number): void => {
  // Node restarts a socket's timer with each read or write.
  server.setTimeout(unread_ms, (socket: Socket) => {
    // A connection without a request is idle, and node closes it with the same timer.
    if (!isAnswering(socket)) socket.destroy()
    else if (socket.writableLength === 0) socket.setTimeout(unread_ms)
    // Reset the connection, so that the operating system drops its buffered bytes.
    else socket.resetAndDestroy()
  })
}

/** Whether a request on the socket has an incomplete response. Node exposes it only in this field. */
const isAnswering = (socket: Socket): boolean =>
  ((socket as { readonly _httpMessage?: ServerResponse | null })._httpMessage ?? null) !== null
