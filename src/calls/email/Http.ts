import { HttpApiBuilder } from "@effect/platform"
import { Effect } from "effect"
import { contract } from "../../http/contract/Contract.ts"
import { json } from "../../http/transport/Body.ts"
import { raw } from "../../http/lanes/Raw.ts"
import * as Reply from "../../http/transport/Reply.ts"
import { envelope } from "../../kernel/Envelope.ts"
import { meteredRoutes } from "../metered/Routes.ts"
import { chargeHeader } from "../metered/ReceiptHeaders.ts"
import { MailApi } from "./Api.ts"
import { SelfLetter } from "../../people/mail/Letter.ts"
import { SelfMail } from "./SelfMail.ts"
import type { SentLetter } from "./SelfMail.ts"

const bodyBytesMax = 1024 * 1024

const decode = json(SelfLetter)

const replyOf = ({ message_id, receipt, to }: SentLetter): Reply.Reply =>
  Reply.json(200, envelope({ message: `sent to ${to}`, message_id }), chargeHeader(receipt))

export const MailHttp = HttpApiBuilder.group(
  contract.add(MailApi),
  "mail",
  Effect.fnUntraced(function* (handlers) {
    const selfMail = yield* SelfMail
    const meteredRoute = yield* meteredRoutes()
    const send = meteredRoute({
      name: "email/self/send",
      body_bytes_max: bodyBytesMax,
      answer: (caller, inbound, beside) =>
        inbound.read(bodyBytesMax).pipe(
          Effect.flatMap(decode),
          Effect.flatMap((letter) => selfMail.send({ caller, letter, beside })),
          Effect.map(replyOf)
        )
    })
    return handlers.handleRaw("sendToSelf", raw(send))
  })
)
