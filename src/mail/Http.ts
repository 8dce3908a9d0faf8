import { HttpApiBuilder } from "@effect/platform"
import { Effect } from "effect"
import { Api } from "../Api.ts"
import { raw } from "../http/Raw.ts"
import { SelfMail } from "./SelfMail.ts"

export const MailHttp = HttpApiBuilder.group(
  Api,
  "mail",
  Effect.fnUntraced(function* (handlers) {
    const { send } = yield* SelfMail
    return handlers.handleRaw("sendToSelf", raw(send))
  })
)
