/**
 * Sends email to the calling account's verified address.
 *
 * Where the specification is silent:
 * - The call tries for up to ten seconds to deliver the email to the mail server. If the server rejects the email permanently, the call fails and
 *   costs nothing. If the server cannot be reached or defers the email, the email remains in the outbox and is charged.
 */
import { Context, Effect, Fiber, Layer } from "effect"
import { Gate } from "../../books/gate/Gate.ts"
import type { Admission, Claim, Receipt } from "../../books/gate/Gate.ts"
import type { GateRefusal } from "../../books/gate/Problems.ts"
import type { Caller } from "../../kernel/Caller.ts"
import { charge } from "../../kernel/Price.ts"
import { PriceVersions } from "../../books/prices/PriceVersions.ts"
import { Tenants } from "../../people/tenants/Tenants.ts"
import { Mail } from "../../upstream/mail/Mail.ts"
import type { SelfLetter } from "../../people/mail/Letter.ts"
import { messageId } from "../../people/mail/Delivery.ts"
import { Outbox } from "../../people/mail/Outbox.ts"
import { EmailNotVerified, LetterRefused, MailUnavailable } from "../../people/mail/Problems.ts"
import type { TooManyLetters } from "../../people/mail/Problems.ts"
import { LetterPrice } from "../../people/mail/Settings.ts"
import { measuredOf } from "../metered/Measured.ts"

/** An email that the mail server has accepted or that is still in the outbox. */
export interface SentLetter {
  /** The Message-ID, without brackets. */
  readonly message_id: string
  /** The account's verified address. */
  readonly to: string
  readonly receipt: Receipt
}

export interface SelfMailContract {
  /** Sends the email to the caller's verified address. The statements `beside` are committed together with the admission. */
  readonly send: (request: {
    readonly caller: Caller
    readonly letter: SelfLetter
    readonly beside?: Claim["beside"]
  }) => Effect.Effect<SentLetter, MailUnavailable | EmailNotVerified | LetterRefused | TooManyLetters | GateRefusal>
}

export class SelfMail extends Context.Tag("tollgate/mail/SelfMail")<SelfMail, SelfMailContract>() {
  static readonly layer = Layer.suspend(() => Layer.effect(SelfMail, make))
}

const make = Effect.gen(function* () {
  const gate = yield* Gate
  const tenants = yield* Tenants
  const outbox = yield* Outbox
  const mail = yield* Mail
  const price = yield* LetterPrice
  const versions = yield* PriceVersions

  const cost = charge([{ units: 1, price }])
  const measured = measuredOf(cost, 1, null)

  const post = Effect.fnUntraced(function* (
    server: NonNullable<typeof mail>,
    to: string,
    { body, subject }: SelfLetter,
    admission: Admission
  ) {
    const key = `self/${admission.call}`
    // If the caller disconnects, the delivery continues. The call waits at most ten seconds for its outcome.
    const sending = yield* Effect.forkDaemon(outbox.post(server, { key, to, subject, text: body }))
    if ((yield* Fiber.join(sending)) === "failed") return yield* new LetterRefused()
    return yield* admission.answer(measured, (receipt): SentLetter => ({
      message_id: messageId(key, server.domain),
      to,
      receipt
    }))
  })

  const send: SelfMailContract["send"] = Effect.fn("SelfMail.send")(function* ({ beside, caller, letter }) {
    if (mail === undefined) return yield* new MailUnavailable()
    const to = yield* tenants.verifiedEmail(caller.account_id)
    if (to === undefined) return yield* new EmailNotVerified({ account_id: caller.account_id })
    const claim: Claim = {
      caller,
      usage_type: "tool",
      capability: "email",
      endpoint: "email/self/send",
      model: "email",
      provider: "mail",
      price: yield* versions.of([{ quantity: "units", unit: "letter", price }]),
      most: cost,
      least: cost,
      beside
    }
    return yield* gate.meter(claim, (admission) => post(mail, to, letter, admission))
  })

  return { send } satisfies SelfMailContract
})
