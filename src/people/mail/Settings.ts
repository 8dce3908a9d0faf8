/** Reads the settings `mail` and `letter_limits`: the mail server, the price of an email to oneself, and the limits on emails. */
import { Context, Effect, Layer, Schema } from "effect"
import { UsdPer } from "../../kernel/Price.ts"
import type { UnitPrice } from "../../kernel/Price.ts"
import { Count, NonEmpty, secretOf } from "../../kernel/Setting.ts"
import type { ConfigProblem } from "../../kernel/Setting.ts"
import { Mail } from "../../upstream/mail/Mail.ts"

const MailServer = Schema.Struct({
  host: NonEmpty,
  /** The port. Defaults to 465 with `secure` and to 587 without it. */
  port: Schema.optional(Count),
  /** Whether to use TLS from the first byte. Otherwise, STARTTLS is used if the server offers it. */
  secure: Schema.optionalWith(Schema.Boolean, { default: () => false }),
  user: Schema.optional(NonEmpty),
  /** The environment variable that contains the password. */
  password_env: Schema.optional(NonEmpty),
  usd_per_letter: Schema.optionalWith(UsdPer(1), { default: () => 0n as UnitPrice }),
  /** The sender, such as `Tollgate <no-reply@example.com>`. */
  from: Schema.String.pipe(
    Schema.filter((text) => /^[^<>@\r\n]*<[^<>\s@]+@[^<>\s@]+>$|^[^<>\s@]+@[^<>\s@]+$/.test(text), {
      message: () => "must be an address, or a name and an address: Tollgate <no-reply@example.com>"
    })
  )
})

/** The price of an email to oneself, in USD. */
export class LetterPrice extends Context.Tag("tollgate/mail/LetterPrice")<LetterPrice, UnitPrice>() {
  static readonly layer = (price: UnitPrice) => Layer.succeed(LetterPrice, price)
  /** A price of 0, for a service that does not charge for emails to oneself. */
  static readonly layerFree = Layer.succeed(LetterPrice, 0n as UnitPrice)
}

export const LetterLimitFacts = Schema.Struct({
  per_hour: Schema.optionalWith(Count, { default: () => 20 }),
  per_day_to_one_address: Schema.optionalWith(Count, { default: () => 5 })
})
export interface LetterLimitFacts extends Schema.Schema.Type<typeof LetterLimitFacts> {}

const presets: LetterLimitFacts = Schema.decodeSync(LetterLimitFacts)({})

/** The maximum number of emails that an account may cause by its invitations, transfers and budgets: per hour, and per day to one address. */
export class LetterLimits extends Context.Reference<LetterLimits>()("tollgate/mail/LetterLimits", {
  defaultValue: () => presets
}) {}

export const fields = {
  /** The mail server. Without a mail server, no email is sent. */
  mail: Schema.optional(MailServer),
  letter_limits: Schema.optionalWith(LetterLimitFacts, { default: () => presets })
}

export interface MailSettings {
  readonly mail?: typeof MailServer.Type | undefined
  readonly letter_limits: LetterLimitFacts
}

/** Provides the mail server, the price and the limits. Fails if the environment variable for the password is not set. */
export const layer = ({ letter_limits, mail }: MailSettings): Layer.Layer<Mail | LetterPrice, ConfigProblem> =>
  Layer.mergeAll(
    mail === undefined ? Mail.layerNone : server(mail),
    mail === undefined ? LetterPrice.layerFree : LetterPrice.layer(mail.usd_per_letter),
    Layer.succeed(LetterLimits, letter_limits)
  )

const server = (mail: typeof MailServer.Type) =>
  Layer.unwrapEffect(
    Effect.map(secretOf("mail.password_env", mail.password_env), (password) =>
      Mail.layerSmtp({ ...mail, password, port: mail.port ?? (mail.secure ? 465 : 587) })
    )
  )
