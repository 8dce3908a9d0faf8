/** Sending mail: the port, and its adapter for SMTP (`Smtp`), which is loaded with the first letter. */
import { Context, Data, Effect, Layer } from "effect"
import type { Redacted } from "effect"

export interface MailSettings {
  readonly host: string
  readonly port: number
  /** TLS from the first byte. Otherwise STARTTLS is used if the server offers it. */
  readonly secure: boolean
  readonly user?: string | undefined
  readonly password?: Redacted.Redacted | undefined
  /** The sender's address: `Tollgate <no-reply@example.com>`. */
  readonly from: string
}

export interface Message {
  readonly to: string
  readonly subject: string
  readonly text: string
  /** The Message-ID without brackets. It is the same for each attempt, so that a receiver recognizes a second copy. */
  readonly id: string
}

/**
 * `refused`: the server refused permanently. `later`: the server refused temporarily or was not reached. `unknown`: the connection ended after the
 * letter was sent and before the server's reply.
 */
export class MailFailed extends Data.TaggedError("MailFailed")<{
  readonly how: "refused" | "later" | "unknown"
  readonly reason: string
}> {}

export interface MailContract {
  /** The host of the sender's address, for Message-IDs. */
  readonly domain: string
  readonly send: (message: Message) => Effect.Effect<void, MailFailed>
}

/** `undefined` if the deployment has no mail. */
export class Mail extends Context.Tag("tollgate/upstream/Mail")<Mail, MailContract | undefined>() {
  static readonly layerSmtp = (settings: MailSettings) => Layer.sync(Mail, () => make(settings))
  static readonly layerNone = Layer.succeed(Mail, undefined)
}

const make = (settings: MailSettings): MailContract => ({
  domain: addressOf(settings.from).replace(/^.*@/, ""),
  send: (message) =>
    Effect.flatMap(
      Effect.promise(() => import("./Smtp.ts")),
      ({ send }) => send(settings, message)
    )
})

/** The bare address in a sender. */
export const addressOf = (from: string): string => /<([^>]+)>/.exec(from)?.[1] ?? from
