/** A host without any HTTP: it asks a decision and has a video made, as functions, until its credit is gone. */
import { Effect, Layer, Redacted, Schema } from "effect"
import type { AccountId, Caller, TenantId } from "tollgate/contracts"
import * as Database from "tollgate/database"
import * as Decisions from "tollgate/decisions"
import { Payers } from "tollgate/gate"
import { billingAccountOf, Ledger, verify } from "tollgate/ledger"
import * as Media from "tollgate/media"
import { Sandbox } from "tollgate/sandbox"

const vendor = (base_url: string) => ({ base_url, api_key: Redacted.make("sandbox"), silence_ms_max: 5_000 })
const decider = Schema.decodeSync(Decisions.DecisionModel)({ upstream: "decider", model: "jev-1.13.0" })
const video = Schema.decodeSync(Media.MediaModelSetting)({
  type: "video",
  id: "sea",
  upstream: "studio",
  endpoint: "sandbox/video",
  usd_per_second: "0.05"
})
const outside = Layer.unwrapEffect(
  Effect.map(Sandbox, ({ url }) =>
    Media.Upstreams.layer({ decider: vendor(`${url}/decisions`), studio: vendor(`${url}/media-queue`) })
  )
)
const rooms = Layer.mergeAll(Decisions.layer, Media.layer, Ledger.layer).pipe(
  Layer.provide([Decisions.ConfiguredDecisionModel.layer(decider), Media.MediaModels.layer([video])]),
  Layer.provide([Media.ImageProviders.layerNone, Payers.layerOwnOnly, outside]),
  Layer.provideMerge(Database.layerMemory),
  Layer.provideMerge(Sandbox.layer())
)

const ids = { account_id: "acc_ada" as AccountId, tenant_id: "ten_ada" as TenantId, application_id: null }
const caller: Caller = { ...ids, credential: "user_token", team_first: false }
const discount = { type: "noul", instructions: "Would a discount be decisive?" }
const request = { state: { cart_usd: 140 }, questions: { discount } }

const program = Effect.gen(function* () {
  const { decide } = yield* Decisions.Decisions
  const { submit } = yield* Media.Media
  const { credit, open } = yield* Ledger
  const account = billingAccountOf("ten_ada")
  yield* open({ account, tenant: "ten_ada" })
  yield* credit({ account, amount: 400_000_000n, source: "purchase", reference: "order 1" })
  const { answers, receipt, usage } = yield* decide({ caller, request })
  const job = yield* submit({ caller, job: { model: "sea", prompt: "waves" } })
  // What is left is less than a decision sets aside.
  const second = yield* decide({ caller, request }).pipe(
    Effect.as("decided"),
    Effect.catchTag("InsufficientCredits", ({ available, required }) => Effect.succeed(`${required - available} short`))
  )
  const rejected = yield* submit({ caller, job: { model: "sky" } }).pipe(
    Effect.as("submitted"),
    Effect.catchTag("MediaRejected", ({ field }) => Effect.succeed(field))
  )
  const money = [receipt.charged, usage.cost, job.quote, receipt.balance].map(String)
  return { answers, money, second, rejected, findings: yield* verify }
})
console.log(JSON.stringify(await Effect.runPromise(Effect.scoped(Effect.provide(program, rooms)))))
