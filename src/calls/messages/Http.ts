import { Effect } from "effect"
import { contract } from "../../http/contract/Contract.ts"
import { promptOf, routes } from "../engine/Face.ts"
import type { Inbound } from "../../http/transport/Inbound.ts"
import { group, raw } from "../../http/lanes/Raw.ts"
import * as Reply from "../../http/transport/Reply.ts"
import type { Caller } from "../../kernel/Caller.ts"
import { MessagesApi } from "./Api.ts"
import { Messages } from "./Messages.ts"
import type { CountTokensCall, MessagesContract, Preview } from "./Messages.ts"
import { messagesRefusal } from "./Refusal.ts"

const previewOf = (inbound: Inbound): Preview => ({
  betas: inbound
    .header("anthropic-beta")
    ?.split(",")
    .map((beta) => beta.trim())
    .filter((beta) => beta !== ""),
  version: inbound.header("anthropic-version")
})

const counting = ({ countTokens }: MessagesContract) =>
  Effect.fnUntraced(function* (caller: Caller, inbound: Inbound) {
    const read = yield* promptOf("count_tokens", caller, inbound)
    const call = { caller, ...read, request_id: inbound.request_id, ...previewOf(inbound) } as CountTokensCall
    const { input_tokens } = yield* countTokens(call)
    return Reply.json(200, { input_tokens })
  })

export const MessagesHttp = group(
  contract.add(MessagesApi),
  "messages",
  Effect.fnUntraced(function* (handlers) {
    const messages = yield* Messages
    const route = yield* routes(messages.least)
    const methods = { protocol: "messages", complete: messages.create, stream: messages.stream } as const
    const create = route("messages", methods, { shape: messagesRefusal, ofHeaders: previewOf })
    return handlers.handleRaw("create", raw(create)).handleRaw("countTokens", raw(counting(messages)))
  })
)
