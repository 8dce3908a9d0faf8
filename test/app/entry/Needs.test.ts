/**
 * The exact needs of each layer of the package. Services that move money, or decide who pays or who signs in, have no default. The compiler checks
 * this: a host that leaves one out does not compile.
 */
import type { SqlClient } from "@effect/sql/SqlClient"
import { Effect, Layer } from "effect"
import { describe, expect, expectTypeOf, it } from "vitest"
import type * as AutoReload from "../../../src/app/entry/autoreload.ts"
import type * as Chat from "../../../src/app/entry/chat.ts"
import * as Database from "../../../src/app/entry/database.ts"
import type * as Decisions from "../../../src/app/entry/decisions.ts"
import type * as Embeddings from "../../../src/app/entry/embeddings.ts"
import * as Gate from "../../../src/app/entry/gate.ts"
import type * as Identity from "../../../src/app/entry/identity.ts"
import type * as Images from "../../../src/app/entry/images.ts"
import type * as Ledger from "../../../src/app/entry/ledger.ts"
import type * as Mail from "../../../src/app/entry/mail.ts"
import type * as Media from "../../../src/app/entry/media.ts"
import type * as Notifications from "../../../src/app/entry/notifications.ts"
import type * as Organisations from "../../../src/app/entry/organisations.ts"
import * as Payments from "../../../src/app/entry/payments.ts"
import type * as Pooling from "../../../src/app/entry/pooling.ts"
import type * as Rerank from "../../../src/app/entry/rerank.ts"
import type * as Search from "../../../src/app/entry/search.ts"
import type * as Speech from "../../../src/app/entry/speech.ts"
import type * as Transcription from "../../../src/app/entry/transcription.ts"
import type * as Transfers from "../../../src/app/entry/transfers.ts"
import type * as Usage from "../../../src/app/entry/usage.ts"
import type { DeploymentSecret } from "../../../src/storage/secret/DeploymentSecret.ts"
import type { Upstreams } from "../../../src/upstream/models/Upstreams.ts"

type Books = Database.Writer | SqlClient
type Metered = Books | Gate.Payers
type Called = Metered | Upstreams

type Needs<L extends Layer.Layer.Any> = Layer.Layer.Context<L>

describe("the needs of a layer", () => {
  it("include Payers for every metered capability", () => {
    expectTypeOf<Needs<typeof Gate.layer>>().toEqualTypeOf<Metered>()
    expectTypeOf<Needs<typeof Chat.layer>>().toEqualTypeOf<Called | Chat.Models>()
    expectTypeOf<Needs<typeof Decisions.layer>>().toEqualTypeOf<Called | Decisions.ConfiguredDecisionModel>()
    expectTypeOf<Needs<typeof Embeddings.layer>>().toEqualTypeOf<Called | Embeddings.EmbeddingModels>()
    expectTypeOf<Needs<typeof Rerank.layer>>().toEqualTypeOf<Called | Rerank.RerankModels>()
    expectTypeOf<Needs<typeof Images.layer>>().toEqualTypeOf<Called | Images.ImageProviders>()
    expectTypeOf<Needs<typeof Media.layer>>().toEqualTypeOf<Called | Media.MediaModels>()
    expectTypeOf<Needs<typeof Search.layer>>().toEqualTypeOf<Called | Search.SearchProviders>()
    expectTypeOf<Needs<typeof Speech.layer>>().toEqualTypeOf<Called | Speech.SpeechProviders>()
    expectTypeOf<Needs<typeof Transcription.layer>>().toEqualTypeOf<Called | Transcription.TranscriptionProviders>()
    expectTypeOf<Needs<typeof Mail.layer>>().toEqualTypeOf<
      Metered | DeploymentSecret | Mail.Mail | Mail.LetterPrice | Mail.PriceList
    >()
  })

  it("include the payment processor and the identity providers", () => {
    expectTypeOf<Needs<typeof Ledger.layer>>().toEqualTypeOf<Books>()
    expectTypeOf<Needs<typeof Notifications.layer>>().toEqualTypeOf<Books>()
    expectTypeOf<Needs<typeof Usage.layer>>().toEqualTypeOf<Books | Usage.PriceList>()
    expectTypeOf<Needs<typeof Pooling.layer>>().toEqualTypeOf<Books | Pooling.PriceList>()
    expectTypeOf<Needs<typeof Payments.layer>>().toEqualTypeOf<Books | Payments.Payments | Payments.PriceList>()
    expectTypeOf<Needs<typeof AutoReload.layer>>().toEqualTypeOf<
      Books | DeploymentSecret | AutoReload.Payments | AutoReload.Mail | AutoReload.PriceList
    >()
    expectTypeOf<Needs<typeof Organisations.layer>>().toEqualTypeOf<
      Books | DeploymentSecret | Organisations.Mail | Organisations.PriceList | Organisations.ServiceInfo
    >()
    expectTypeOf<Needs<typeof Transfers.layer>>().toEqualTypeOf<
      Books | DeploymentSecret | Transfers.Mail | Transfers.PriceList | Transfers.ServiceInfo
    >()
    expectTypeOf<Needs<typeof Identity.layer>>().toEqualTypeOf<
      | Books
      | DeploymentSecret
      | Identity.ConfiguredClients
      | Identity.IdentityProviders
      | Identity.PriceList
      | Identity.ServiceInfo
    >()
  })

  it("must be met explicitly", () => {
    const program = Effect.asVoid(Gate.Gate)
    /** Takes an effect without needs, like a runtime. */
    const run = (effect: Effect.Effect<void, unknown>) => expect(Effect.isEffect(effect)).toBe(true)
    const books = Database.layerMemory
    run(Effect.provide(program, Gate.layer.pipe(Layer.provide(Gate.Payers.layerOwnOnly), Layer.provide(books))))
    // @effect-diagnostics-next-line missingEffectContext:off -- shown on purpose
    // @ts-expect-error -- Payers is missing
    run(Effect.provide(program, Gate.layer.pipe(Layer.provide(books))))
    const purchases = Effect.asVoid(Payments.Purchases)
    const nothing = Payments.PriceList.layerNone
    run(
      Effect.provide(
        purchases,
        Payments.layer.pipe(Layer.provide([Payments.Payments.layerNone, nothing]), Layer.provide(books))
      )
    )
    // @effect-diagnostics-next-line missingEffectContext:off -- shown on purpose
    // @ts-expect-error -- Payments is missing
    run(Effect.provide(purchases, Payments.layer.pipe(Layer.provide(nothing), Layer.provide(books))))
  })
})
