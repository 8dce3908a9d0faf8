/** The port for sending email. Its SMTP adapter (`Smtp`) is loaded when the first email is sent. */
import { Context, Data, Effect, Layer } from "effect"
import type { Redacted } from "effect"

export interface MailSettings {
  readonly host: string
  readonly port: number
  /** Whether TLS starts with the first byte. Otherwise, STARTTLS is used if the server offers it. */
  readonly secure: boolean
  readonly user?: string | undefined
  readonly password?: Redacted.Redacted | undefined
  /** The sender's address, such as `Tollgate <no-reply@example.com>`. */
  readonly from: string
}

export interface Message {
  readonly to: string
  readonly subject: string
  readonly text: string
  /** The Message-ID without brackets. All attempts use the same id, so that a recipient's server can recognize duplicates. */
  readonly id: string
}

/**
 * The reason why an email was not sent. `refused`: the server refused it permanently. `later`: the server refused it temporarily or could not be
 * reached. `unknown`: the connection ended after the email was sent but before the server replied.
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

/** `undefined` if the deployment does not send email. */
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

/** Extracts the bare address from a sender such as `Tollgate <no-reply@example.com>`. */
export const addressOf = (from: string): string => /<([^>]+)>/.exec(from)?.[1] ?? from
