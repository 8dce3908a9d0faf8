/** A room whose settings name an upstream that is not there is not built. */
import type { SqlClient } from "@effect/sql/SqlClient"
import { expect, layer } from "@effect/vitest"
import { Effect, Layer, Redacted } from "effect"
import { Chat } from "../../src/calls/chat/Chat.ts"
import type { Models } from "../../src/calls/prompts/Model.ts"
import * as ChatSettings from "../../src/calls/engine/Settings.ts"
import { Decisions } from "../../src/calls/decisions/Decisions.ts"
import { ConfiguredDecisionModel } from "../../src/calls/decisions/Settings.ts"
import { Embeddings } from "../../src/calls/embeddings/Embeddings.ts"
import { EmbeddingModels } from "../../src/calls/embeddings/Settings.ts"
import { Gate } from "../../src/books/gate/Gate.ts"
import { Payers } from "../../src/books/gate/Payers.ts"
import { Images } from "../../src/calls/images/Images.ts"
import { ImageProviders } from "../../src/calls/images/Settings.ts"
import type { AccountId, TenantId } from "../../src/kernel/Ids.ts"
import type { UnitPrice } from "../../src/kernel/Price.ts"
import type { Order } from "../../src/calls/media/Job.ts"
import { Jobs } from "../../src/calls/media/Jobs.ts"
import { Media } from "../../src/calls/media/Media.ts"
import { MediaModels } from "../../src/calls/media/Settings.ts"
import { PriceFactors } from "../../src/books/prices/PriceFactors.ts"
import { PriceVersions } from "../../src/books/prices/PriceVersions.ts"
import { Rerank } from "../../src/calls/rerank/Rerank.ts"
import { RerankModels } from "../../src/calls/rerank/Settings.ts"
import { Search } from "../../src/calls/search/Search.ts"
import { SearchProviders } from "../../src/calls/search/Settings.ts"
import { Speech } from "../../src/calls/speech/Speech.ts"
import { SpeechProviders } from "../../src/calls/speech/Settings.ts"
import { Transcription } from "../../src/calls/transcription/Transcription.ts"
import { TranscriptionProviders } from "../../src/calls/transcription/Settings.ts"
import { UnknownUpstream, UnspokenProtocol, Upstreams } from "../../src/upstream/models/Upstreams.ts"
import type { ProtocolName } from "../../src/upstream/models/Protocol.ts"
import * as TestDatabase from "../support/database.ts"

const price = 1_000_000_000n as UnitPrice
const upstream = "elsewhere"
const provider = { id: "one", name: "One", description: "", upstream }

const model: Models["Type"]["models"][number] = {
  id: "one",
  name: "One",
  description: "",
  owned_by: "system",
  created: undefined,
  input_modalities: ["text"],
  output_modalities: ["text"],
  context_length: 1_000,
  output_tokens_max: 100,
  attachment_tokens_max: 100,
  added_tokens_max: 0,
  tool_tokens_max: 0,
  prompt_price: price,
  completion_price: price,
  request_price: 0n as UnitPrice,
  extras: [],
  // The first is there, the second is not.
  routes: ["here", upstream].map((name) => ({ upstream: name, model: "one", limit_field: "max_tokens" }))
}

const speech = [{ id: "one", upstream_model: "one", events: false, price }] as const
const transcription = [
  { id: "one", upstream_model: "one", wire_format: "json", translates: false, max_seconds: 7_200, price }
] as const

type Needs = Gate | Jobs | PriceFactors | PriceVersions | SqlClient | Upstreams

const rooms: ReadonlyArray<readonly [named_by: string, Layer.Layer<never, unknown, Needs>]> = [
  ["chat model one", Chat.layer.pipe(Layer.provide(ChatSettings.layer({ models: [model] })))],
  [
    "decision model one",
    Decisions.layer.pipe(
      Layer.provide(
        ConfiguredDecisionModel.layer({ upstream, path: "/", model: "one", spellings: ["one"], input_price: price })
      )
    )
  ],
  [
    "search provider one",
    Search.layer.pipe(
      Layer.provide(SearchProviders.layer([{ ...provider, vendor: "tavily", price, price_by_depth: {} }]))
    )
  ],
  ["speech provider one", Speech.layer.pipe(Layer.provide(SpeechProviders.layer([{ ...provider, models: speech }])))],
  [
    "transcription provider one",
    Transcription.layer.pipe(Layer.provide(TranscriptionProviders.layer([{ ...provider, models: transcription }])))
  ],
  [
    "image provider one",
    Images.layer.pipe(
      Layer.provide(
        ImageProviders.layer([
          {
            ...provider,
            endpoint: "one",
            image_to_image_endpoint: undefined,
            edit_price: undefined,
            edit_price_by_size: {},
            edit_price_by_pixels: {},
            price,
            images_max: 1,
            price_by_size: {},
            price_by_pixels: {},
            output_formats: [],
            edits: undefined,
            aliases: []
          }
        ])
      )
    )
  ],
  [
    "media model one",
    Media.layer.pipe(
      Layer.provide(
        MediaModels.layer([
          {
            id: "one",
            display_name: "One",
            upstream,
            endpoint: "one",
            pricing_note: "",
            passes: [],
            prompt_required: false,
            type: "image",
            price,
            images_max: 1,
            sizes: ["square"],
            default: true
          }
        ])
      )
    )
  ]
]

const single = { id: "one", name: "One", description: "", owned_by: "system", added_tokens_max: 0 }
const routes = [{ upstream: "here", model: "one" }]

const spoken: ReadonlyArray<
  readonly [
    named_by: string,
    Layer.Layer<never, unknown, Needs>,
    speaks: ReadonlyArray<ProtocolName>,
    needs: ReadonlyArray<ProtocolName>
  ]
> = [
  [
    "chat model one",
    Chat.layer.pipe(Layer.provide(ChatSettings.layer({ models: [model] }))),
    ["embeddings"],
    ["chat", "text", "messages", "responses", "google", "bedrock"]
  ],
  [
    "embedding model one",
    Embeddings.layer.pipe(
      Layer.provide(
        EmbeddingModels.layer([
          { ...single, input_tokens_max: 1, inputs_max: 1, dimensions: undefined, shortens: false, price, routes }
        ])
      )
    ),
    ["chat", "rerank"],
    ["embeddings"]
  ],
  [
    "rerank model one",
    Rerank.layer.pipe(
      Layer.provide(
        RerankModels.layer([
          {
            ...single,
            input_tokens_max: 1,
            documents_max: 1,
            documents_per_search: 1,
            tokens_per_document: 1,
            search_price: price,
            token_price: price,
            routes
          }
        ])
      )
    ),
    ["embeddings"],
    ["rerank"]
  ]
]

const here = { base_url: "http://127.0.0.1:1", api_key: Redacted.make("key"), silence_ms_max: 1_000 }

const world = Jobs.layer.pipe(
  Layer.provideMerge(Layer.mergeAll(Gate.layer, PriceVersions.layer, PriceFactors.layerNone)),
  Layer.provide(Payers.layerOwnOnly),
  Layer.provideMerge(Upstreams.layer({ here })),
  Layer.provideMerge(TestDatabase.writer),
  Layer.provideMerge(TestDatabase.sql)
)

layer(world)("an upstream that is not there", (it) => {
  it.effect.each(rooms)("is refused while the room is built: %s", ([named_by, room]) =>
    Effect.gen(function* () {
      const error = yield* Effect.flip(Effect.scoped(Layer.build(room)))
      expect(error).toEqual(new UnknownUpstream({ upstream, named_by, upstreams: ["here"] }))
      expect((error as UnknownUpstream).message).toBe(
        `${named_by}: no upstream named elsewhere is configured (the upstreams are: here); add it to Upstreams, or choose another`
      )
    })
  )

  it.effect.each(spoken)("speaks what a model of it needs: %s", ([named_by, room, speaks, needs]) =>
    Effect.gen(function* () {
      const unspoken = Upstreams.layer({ here: { ...here, speaks }, elsewhere: { ...here, speaks } })
      const error = yield* Effect.flip(Effect.scoped(Layer.build(Layer.provide(room, unspoken))))
      expect(error).toEqual(new UnspokenProtocol({ upstream: "here", named_by, speaks, needs }))
      expect((error as UnspokenProtocol).message).toBe(
        `${named_by}: the upstream here accepts ${speaks.join(", ")} but must accept ${needs.join(" or ")}: extend its speaks, or choose another upstream`
      )
      const spoken = Upstreams.layer({ here: { ...here, speaks: needs }, elsewhere: here })
      yield* Effect.scoped(Layer.build(Layer.provide(room, spoken)))
    })
  )

  it.effect("is a vendor that takes no job: nothing is reserved", () =>
    Effect.gen(function* () {
      const caller = {
        account_id: "acc_ada" as AccountId,
        tenant_id: "ten_ada" as TenantId,
        application_id: null,
        credential: "user_token",
        team_first: false
      } as const
      const order: Order = {
        route: "images",
        usage_endpoint: "images/generate",
        type: "image",
        model: "one",
        provider: "one",
        upstream,
        endpoint: "one",
        input: {},
        units: 1,
        unit: "image",
        price,
        error_types: { JobRejected: "a", VendorBusy: "b", VendorUnavailable: "c" }
      }
      // The caller has no account: what came as far as the gate would be refused there.
      const error = yield* Effect.flip((yield* Jobs).submit({ caller, order }))
      expect(error).toMatchObject({ _tag: "VendorUnavailable", reason: "there is no upstream elsewhere" })
    })
  )
})
