/**
 * Closes the connection of a client that stops reading its response, because unread bytes use memory and keep the upstream of a stream open. If no
 * byte moves for some time, the call ends as if the client had disconnected (`upstream/wire/ByteStream`). A client can wait indefinitely for a
 * response, or for a stream's next event.
 */
import { Context, Layer, Schema } from "effect"
import type { Server, ServerResponse } from "node:http"
import type { Socket } from "node:net"
import { Seconds } from "../../kernel/Setting.ts"

export const AnswerSettings = Schema.Struct({
  /** How long a client may leave bytes unread, in milliseconds. */
  unread_ms: Schema.optionalWith(Seconds, { default: () => 180_000 }).pipe(Schema.fromKey("unread_seconds"))
})
export interface AnswerSettings extends Schema.Schema.Type<typeof AnswerSettings> {}

const presets = Schema.decodeSync(AnswerSettings)({})

export class Unread extends Context.Reference<Unread>()("tollgate/http/Unread", {
  defaultValue: () => presets.unread_ms
}) {
  static readonly layer = ({ unread_ms }: AnswerSettings) => Layer.succeed(Unread, unread_ms)
}

/** Closes each connection with a response that its client has not read for this many milliseconds. */
export const endUnread = (server: Server, unread_ms: number): void => {
  // Node restarts a socket's timer with each read or write.
  server.setTimeout(unread_ms, (socket: Socket) => {
    // A connection without a request is idle. Node would close it with the same timer.
    if (!isAnswering(socket)) socket.destroy()
    else if (socket.writableLength === 0) socket.setTimeout(unread_ms)
    // Reset the connection, so that the operating system discards the bytes it has buffered.
    else socket.resetAndDestroy()
  })
}

/** Returns whether a response on the socket is still incomplete. Node exposes this only through this field. */
const isAnswering = (socket: Socket): boolean =>
  ((socket as { readonly _httpMessage?: ServerResponse | null })._httpMessage ?? null) !== null
