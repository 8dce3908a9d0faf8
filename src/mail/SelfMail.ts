/**
 * Mail to oneself: a key's account writes to its own verified address. The letter is sent at once, so that one that is refused for
 * good costs nothing; one that could not leave yet is the outbox's, and is charged as accepted.
 */
import { Context, Effect, Layer } from "effect"
import { Gate } from "../gate/Gate.ts"
import type { Measured } from "../gate/Gate.ts"
import type { InsufficientCredits } from "../gate/Problems.ts"
import { json } from "../http/Body.ts"
import type { Caller } from "../kernel/Caller.ts"
import type { Inbound } from "../http/Inbound.ts"
import type { BodyProblem } from "../http/Incoming.ts"
import * as Reply from "../http/Reply.ts"
import { Idempotency } from "../idempotency/Idempotency.ts"
import type { Beside, IdempotencyProblem } from "../idempotency/Idempotency.ts"
import { envelope } from "../kernel/Envelope.ts"
import { toDecimal } from "../kernel/Money.ts"
import { charge } from "../kernel/Price.ts"
import type { UnitPrice } from "../kernel/Price.ts"
import { PriceVersions } from "../prices/PriceVersions.ts"
import { Tenants } from "../tenants/Tenants.ts"
import { Mail } from "../upstream/Mail.ts"
import { SelfLetter } from "./Letter.ts"
import { messageId, Outbox } from "./Outbox.ts"
import { EmailNotVerified, LetterRefused, MailUnavailable } from "./Problems.ts"

/** USD a letter. */
export class LetterPrice extends Context.Reference<LetterPrice>()("tollgate/mail/LetterPrice", {
  defaultValue: (): UnitPrice => 0n as UnitPrice
}) {}

type SelfMailProblem =
  | BodyProblem
  | EmailNotVerified
  | MailUnavailable
  | LetterRefused
  | InsufficientCredits
  | IdempotencyProblem

export interface Contract {
  /** `POST /v1/email/self/send`. */
  readonly send: (caller: Caller, inbound: Inbound) => Effect.Effect<Reply.Reply, SelfMailProblem>
}

const bodyBytesMax = 1024 * 1024

export class SelfMail extends Context.Tag("tollgate/mail/SelfMail")<SelfMail, Contract>() {
  static readonly layer = Layer.suspend(() => Layer.effect(SelfMail, make))
}

const read = json(SelfLetter)

const sent: Omit<Measured, "cost"> = {
  prompt_tokens: 0,
  completion_tokens: 0,
  units: 1,
  provider: null,
  success: true,
  error_type: null,
  usage_source: "counted"
}

const make = Effect.gen(function* () {
  const gate = yield* Gate
  const tenants = yield* Tenants
  const outbox = yield* Outbox
  const mail = yield* Mail
  const price = yield* LetterPrice
  const idempotency = yield* Idempotency
  const versions = yield* PriceVersions

  const call = Effect.fnUntraced(function* (caller: Caller, inbound: Inbound, beside: Beside | undefined) {
    const { body, subject } = yield* read(yield* inbound.read(bodyBytesMax))
    if (mail === undefined) return yield* new MailUnavailable()
    const to = yield* tenants.verifiedEmail(caller.account_id)
    if (to === undefined) return yield* new EmailNotVerified()
    const cost = charge([{ units: 1, price }])
    const claim = {
      caller,
      usage_type: "tool",
      endpoint: "email/self/send",
      model: "email",
      provider: "mail",
      price: yield* versions.of([{ quantity: "units", unit: "letter", price }]),
      most: cost,
      least: cost,
      beside
    } as const
    return yield* gate.meter(claim, (admission) =>
      Effect.gen(function* () {
        const key = `self/${admission.call}`
        if ((yield* outbox.post(mail, { key, to, subject, text: body })) === "failed") return yield* new LetterRefused()
        const result = { message: `sent to ${to}`, message_id: messageId(key, mail.domain) }
        return yield* admission.answer({ ...sent, cost }, ({ charged }) =>
          Reply.json(200, envelope(result), { "x-charge-usd": toDecimal(charged) })
        )
      })
    )
  })

  const send: Contract["send"] = (caller, inbound) =>
    idempotency.onceOf(caller, inbound, "email/self/send", bodyBytesMax, (inbound, beside) =>
      call(caller, inbound, beside)
    )

  return { send } satisfies Contract
})
