/** A host that asks decisions and submits media jobs as functions, against the vendors of the sandbox. Each refusal has its tag. */
import { Effect, Layer, Schema } from "effect"
import * as Database from "tollgate/database"
import * as Decisions from "tollgate/decisions"
import * as Gate from "tollgate/gate"
import * as Ledger from "tollgate/ledger"
import * as Media from "tollgate/media"
import { Sandbox } from "tollgate/sandbox"
import * as Upstreams from "tollgate/upstreams"

/** The parts of a configuration that this host reads, each declared by its room. */
const Configuration = Schema.Struct({ ...Decisions.settings, ...Media.settings, ...Upstreams.settings })
const settings = Layer.unwrapEffect(
  Effect.gen(function* () {
    const read = yield* Schema.decodeUnknown(Configuration)((yield* Sandbox).configuration)
    return Layer.mergeAll(Decisions.layerSettings(read), Media.layerSettings(read), Upstreams.layerSettings(read))
  })
)

const ada = { account_id: Gate.AccountId.make("acc_ada"), tenant_id: Gate.TenantId.make("ten_ada") }
const caller: Gate.Caller = { ...ada, application_id: null, credential: "user_token", team_first: false }
const state = "I was charged twice for billing"
const criteria = { billing: "a bill", other: "anything else" }
const questions = { about: { type: "choice", instructions: "What is it about?", criteria } }
const named = ({ _tag }: { readonly _tag: string }) => Effect.succeed(_tag)
const budgets = { BudgetExceeded: named, RateLimitReached: named }
const amounts = ({ available, required }: Gate.InsufficientCredits) => Effect.succeed({ available, required })
/** A decision and a job. The compiler says that no refusal is left over. */
const decide: Effect.Effect<object | string, never, Decisions.Decisions> = Decisions.Decisions.pipe(
  Effect.flatMap(({ decide }) => decide({ caller, request: { state, questions } })),
  Effect.map(({ answers, receipt: { balance, charged } }) => ({ answers: Object.keys(answers), charged, balance })),
  Effect.catchTags({ InsufficientCredits: amounts, InvalidRequest: named, BooksUnavailable: named }),
  Effect.catchTags({ Busy: named, ModelNotAllowed: named, DecisionsUnavailable: named, DecisionRefused: named }),
  Effect.catchTags({ ...budgets, DecisionUpstreamFailed: named, DecisionUpstreamUnreachable: named })
)
const submit = (job: Media.MediaRequest): Effect.Effect<object | string, never, Media.Media> =>
  Effect.flatMap(Media.Media, (media) => media.submit({ caller, job })).pipe(
    Effect.map(({ quote, status }) => ({ quote, status })),
    Effect.catchTags({ InsufficientCredits: amounts, BooksUnavailable: named, ModelNotAllowed: named }),
    Effect.catchTags({ ...budgets, MediaRateLimited: named }),
    Effect.catchTags({ MediaRejected: ({ field }) => Effect.succeed({ field }), MediaUnavailable: named })
  )

const program = Effect.gen(function* () {
  const ledger = yield* Ledger.Ledger
  const account = Ledger.billingAccountOf(caller.tenant_id)
  yield* ledger.open({ account, tenant: caller.tenant_id })
  const poor = yield* decide
  yield* ledger.credit({ account, amount: Ledger.usd, source: "purchase", reference: "order 1" })
  const jobs = [5, 60, 61].map((duration) => submit({ model: "sandbox-video-open", prompt: "the tide", duration }))
  return { poor, decided: yield* decide, jobs: yield* Effect.all(jobs), findings: yield* Ledger.verify }
})

const rooms = Layer.mergeAll(Decisions.layer, Media.layer, Ledger.layer).pipe(
  Layer.provide([Gate.Payers.layerOwnOnly, Layer.provide(settings, Sandbox.layer())]),
  Layer.provideMerge(Database.layerMemory)
)
const text = (_: string, value: unknown) => (typeof value === "bigint" ? `${value}` : value)
console.log(JSON.stringify(await Effect.runPromise(Effect.provide(program, rooms)), text))
