/** The route of the toy: JSON to a text, a count to JSON. */
import { Effect } from "effect"
import { headersOf } from "../../../src/calls/metered/ReceiptHeaders.ts"
import { meteredRoutes } from "../../../src/calls/metered/Routes.ts"
import { contract } from "../../../src/http/contract/Contract.ts"
import { group, raw } from "../../../src/http/lanes/Raw.ts"
import { json } from "../../../src/http/transport/Body.ts"
import * as Reply from "../../../src/http/transport/Reply.ts"
import { WordsApi } from "./Api.ts"
import { Text } from "./Query.ts"
import { Words } from "./Words.ts"

const bodyBytesMax = 1024
const decode = json(Text)

export const WordsHttp = group(
  contract.add(WordsApi),
  "words",
  Effect.fnUntraced(function* (handlers) {
    const words = yield* Words
    const meteredRoute = yield* meteredRoutes()
    const count = meteredRoute({
      name: "tools/words",
      body_bytes_max: bodyBytesMax,
      answer: (caller, inbound, beside) =>
        inbound.read(bodyBytesMax).pipe(
          Effect.flatMap(decode),
          Effect.flatMap(({ text }) => words.count({ caller, text, beside })),
          Effect.map(({ receipt, words }) => Reply.json(200, { words }, headersOf(receipt)))
        )
    })
    return handlers.handleRaw("count", raw(count))
  })
)
