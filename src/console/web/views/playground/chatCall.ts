/** Sends a chat call with the session's token and reads the streamed response. */
import { apiRoot } from "../../app/Base.ts"
import { fetchWith } from "../../app/Client.ts"
import { EventText } from "../../app/Live.ts"
import { personSession } from "../../app/PersonSession.ts"
import { Refusal, refusalOf, Unreachable } from "../../app/Refusal.ts"

export interface Message {
  readonly role: "system" | "user" | "assistant"
  readonly content: string
}

export interface ChatBody {
  readonly model: string
  readonly messages: ReadonlyArray<Message>
  readonly max_tokens?: number
  readonly temperature?: number
}

export interface Tokens {
  readonly prompt_tokens: number
  readonly completion_tokens: number
}

export interface ChatListener {
  /** Called when the service accepts the call. `usageId` is the usage record's id. */
  readonly begun: (usageId: string | undefined, requestId: string | undefined) => void
  readonly text: (piece: string) => void
  readonly tokens: (tokens: Tokens) => void
}

interface Chunk {
  readonly choices?: ReadonlyArray<{ readonly delta?: { readonly content?: string | null } }>
  readonly usage?: Tokens | null
  readonly error?: { readonly message?: string; readonly code?: string } | string
}

const send = fetchWith(personSession)

const sent = (body: ChatBody, signal: AbortSignal): Promise<Response> =>
  send(
    new Request(`${apiRoot}/v1/chat/completions`, {
      method: "POST",
      credentials: "omit",
      headers: { "content-type": "application/json", accept: "text/event-stream" },
      body: JSON.stringify({ ...body, stream: true, stream_options: { include_usage: true } }),
      signal
    })
  )

const faultOf = (error: NonNullable<Chunk["error"]>, requestId: string | undefined): Refusal =>
  new Refusal(
    500,
    typeof error === "string"
      ? { error, code: "upstream_error" }
      : { error: error.message ?? "", code: error.code ?? "upstream_error" },
    requestId
  )

/**
 * Sends a call and streams the response to `listener`. Rejects with `Refusal`, `Unreachable` or `SignedOut`, or with `AbortError` if `signal` aborts.
 */
export const streamChat = async (body: ChatBody, signal: AbortSignal, listener: ChatListener): Promise<void> => {
  const response = await sent(body, signal)
  if (!response.ok || response.body === null) throw await refusalOf(response)
  const requestId = response.headers.get("x-request-id") ?? undefined
  listener.begun(response.headers.get("x-usage-id") ?? undefined, requestId)
  const events = new EventText()
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader()
  let isWhole = false
  while (!isWhole) {
    const { done, value } = await reader.read().catch((error: unknown) => {
      throw signal.aborted ? error : new Unreachable(error)
    })
    if (done) throw faultOf({}, requestId)
    for (const { data } of events.take(value)) {
      isWhole ||= data === "[DONE]"
      if (data !== "[DONE]") hear(JSON.parse(data) as Chunk, listener, requestId)
    }
  }
}

const hear = ({ choices, error, usage }: Chunk, hearing: ChatListener, requestId: string | undefined): void => {
  if (error !== undefined) throw faultOf(error, requestId)
  const piece = choices?.[0]?.delta?.content
  if (typeof piece === "string" && piece !== "") hearing.text(piece)
  if (usage !== undefined && usage !== null) hearing.tokens(usage)
}
