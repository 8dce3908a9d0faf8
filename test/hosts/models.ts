/** A host that asks models as functions, in each protocol that their clients speak, whole and as a stream of events. */
import { Chunk, Effect, Layer, Schema, Stream } from "effect"
import * as Chat from "tollgate/chat"
import * as Database from "tollgate/database"
import * as Gate from "tollgate/gate"
import * as Ledger from "tollgate/ledger"
import { Sandbox } from "tollgate/sandbox"
import * as Upstreams from "tollgate/upstreams"

const Configuration = Schema.Struct({ ...Chat.settings, ...Upstreams.settings })
const settings = Layer.unwrapEffect(
  Effect.gen(function* () {
    const read = yield* Schema.decodeUnknown(Configuration)((yield* Sandbox).configuration)
    return Layer.merge(Chat.layerSettings(read), Upstreams.layerSettings(read))
  })
)

const ada = { account_id: Gate.AccountId.make("acc_ada"), tenant_id: Gate.TenantId.make("ten_ada") }
const caller: Gate.Caller = { ...ada, application_id: null, credential: "user_token", team_first: false }
const model = "sandbox-small"
const said = { role: "user", content: "two words" }
const typesOf = (events: Stream.Stream<{ readonly type: string }, Chat.UpstreamFailed>) =>
  Effect.map(Stream.runCollect(events), (all) => [...new Set(Chunk.map(all, ({ type }) => type))])

const program = Effect.gen(function* () {
  const ledger = yield* Ledger.Ledger
  const messages = yield* Chat.Messages
  const responses = yield* Chat.Responses
  const account = Ledger.billingAccountOf(caller.tenant_id)
  yield* ledger.open({ account, tenant: caller.tenant_id })
  const prompt = { model, max_tokens: 10, messages: [said] }
  const poor = yield* Effect.catchTag(messages.create({ caller, prompt }), "InsufficientCredits", ({ _tag }) =>
    Effect.succeed({ _tag })
  )
  yield* ledger.credit({ account, amount: Ledger.usd, source: "purchase", reference: "order 1" })
  const message = yield* messages.create({ caller, prompt })
  const response = yield* responses.create({ caller, prompt: { model, input: "two words" } })
  const streamed = yield* messages.stream({ caller, prompt })
  const types = yield* typesOf(streamed.events)
  const { charged } = yield* streamed.receipt
  const wrong = yield* Effect.catchTag(
    responses.stream({ caller, prompt: { model, input: "x", background: true } }),
    "InvalidRequest",
    ({ field }) => Effect.succeed({ field })
  )
  const receipts = [message.receipt.charged, response.receipt.charged, charged]
  const texts = [message.completion.content, response.completion.output]
  return { poor, texts, types, receipts, wrong, findings: yield* Ledger.verify }
})

const rooms = Layer.mergeAll(Chat.layer, Ledger.layer).pipe(
  Layer.provide([Gate.Payers.layerOwnOnly, Layer.provide(settings, Sandbox.layer())]),
  Layer.provideMerge(Database.layerMemory)
)
const text = (_: string, value: unknown) => (typeof value === "bigint" ? `${value}` : value)
console.log(JSON.stringify(await Effect.runPromise(Effect.provide(program, rooms)), text))
