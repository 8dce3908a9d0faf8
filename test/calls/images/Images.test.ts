/** Images as a program orders them, without HTTP: waited for or polled, charged as Nano, refused by tag. */
import { expect, layer } from "@effect/vitest"
import { Duration, Effect, Layer } from "effect"
import type { ImageRequest } from "../../../src/calls/images/Image.ts"
import { ImageProviders } from "../../../src/calls/images/Settings.ts"
import type { ImageProvider } from "../../../src/calls/images/Settings.ts"
import { CreationPatience, ImagePatience, Images } from "../../../src/calls/images/Images.ts"
import { listOf } from "../../../src/calls/images/Prices.ts"
import { billingAccountOf } from "../../../src/kernel/Ids.ts"
import { usd } from "../../../src/kernel/Money.ts"
import type { UnitPrice } from "../../../src/kernel/Price.ts"
import { Jobs } from "../../../src/calls/media/Jobs.ts"
import { Explanations } from "../../../src/money/usage/Explanations.ts"
import { booksOf, fault, over, person, received } from "../../support/Called.ts"
import { move } from "../../support/generation.ts"

/** 0.04 USD an image, 0.01 of the small ones. */
const provider: ImageProvider = {
  id: "vendor",
  name: "Vendor",
  description: "",
  upstream: "vendor",
  endpoint: "sandbox/image",
  image_to_image_endpoint: undefined,
  edit_price: undefined,
  edit_price_by_size: {},
  edit_price_by_pixels: {},
  images_max: 4,
  price: 40_000_000_000_000_000n as UnitPrice,
  price_by_size: { square: 10_000_000_000_000_000n as UnitPrice },
  price_by_pixels: { "1536x1024": 60_000_000_000_000_000n as UnitPrice },
  output_formats: ["png", "webp"],
  edits: undefined,
  aliases: ["gpt-image-1"]
}
const price = usd / 25n

const request: ImageRequest = { prompt: "a lighthouse", num_images: 2, image_size: "square_hd", sync_mode: true }

const room = Images.layer.pipe(Layer.provideMerge(Jobs.layer), Layer.provide(Layer.succeed(ImageProviders, [provider])))

layer(over(room, "images-queue"), { excludeTestServices: true })("images", (it) => {
  it.effect("are waited for, and charged once they are there", () =>
    Effect.gen(function* () {
      const caller = yield* person(usd)
      const made = yield* (yield* Images).generate({ caller, request })
      const [record, ...others] = (yield* booksOf(caller)).calls
      expect(made).toMatchObject({
        status: "COMPLETED",
        images: [{ width: 1_024 }, { width: 1_024 }],
        quote: 2n * price,
        charge: { usage_id: record!.id, charged: 2n * price }
      })
      expect(others).toEqual([])
      expect(yield* booksOf(caller)).toMatchObject({ balance: usd - 2n * price, reserved: 0n, findings: [] })
    })
  )

  it.effect("are polled for where the caller would rather", () =>
    Effect.gen(function* () {
      const caller = yield* person(usd)
      const images = yield* Images
      const small = { ...request, image_size: "square", sync_mode: false } as const
      const submitted = yield* images.generate({ caller, request: small })
      const { request_id } = submitted
      expect(submitted).toMatchObject({ status: "PROCESSING", quote: usd / 50n, charge: undefined })
      yield* move(request_id, "FAILED")
      expect(yield* images.status({ caller, request_id })).toMatchObject({
        status: "FAILED",
        error: "the sandbox was configured to fail",
        charge: { charged: 0n }
      })
      const stranger = yield* person(usd)
      expect(yield* Effect.flip(images.status({ caller: stranger, request_id }))).toMatchObject({
        _tag: "ImageNotFound",
        request_id
      })
    })
  )

  it.effect("that cannot be made or paid are refused with what a program wants to know", () =>
    Effect.gen(function* () {
      const caller = yield* person(price)
      const { generate } = yield* Images
      const before = (yield* received("images")).length
      const refused = (more: object) => Effect.flip(generate({ caller, request: { ...request, ...more } }))
      expect(yield* refused({ num_images: 5 })).toMatchObject({ _tag: "InvalidRequest", field: "num_images" })
      expect(yield* refused({ provider: "other" })).toMatchObject({ _tag: "InvalidRequest", field: "provider" })
      expect(yield* refused({})).toMatchObject({
        _tag: "InsufficientCredits",
        available: price,
        required: 2n * price,
        payer: billingAccountOf(caller.tenant_id)
      })
      expect((yield* received("images")).length).toBe(before)
      yield* fault("images", { status: 429, headers: { "retry-after": "3" } })
      expect(yield* refused({ num_images: 1 })).toMatchObject({ _tag: "UpstreamBusy", retry_after: 3 })
      expect(yield* booksOf(caller)).toMatchObject({
        balance: price,
        reserved: 0n,
        calls: [{ cost: 0n, error_type: "upstream_rate_limited" }],
        findings: []
      })
    })
  )
})

const noPatience = Layer.merge(
  Layer.succeed(ImagePatience, Duration.zero),
  Layer.succeed(CreationPatience, Duration.zero)
)

layer(over(room.pipe(Layer.provide(noPatience)), "images-queue"), {
  excludeTestServices: true
})("images that take longer than the patience", (it) => {
  it.effect("are processing, and are found by the call that made them", () =>
    Effect.gen(function* () {
      const caller = yield* person(usd)
      const images = yield* Images
      const calls: Array<string> = []
      const beside = (call: string) => {
        calls.push(call)
        return []
      }
      const submitted = yield* images.generate({ caller, request, beside })
      expect(submitted).toMatchObject({ status: "PROCESSING", charge: undefined })
      yield* move(submitted.request_id, "COMPLETED")
      const [call] = calls
      expect(yield* images.ofCall({ caller, request, call: call! })).toMatchObject({
        request_id: submitted.request_id,
        status: "COMPLETED",
        charge: { charged: 2n * price }
      })
    })
  )

  it.effect("in OpenAI's fields too, at the price of a size of the provider's own", () =>
    Effect.gen(function* () {
      const caller = yield* person(usd)
      const images = yield* Images
      const creation = { prompt: "a lighthouse", model: "gpt-image-1", size: "1536x1024" }
      const submitted = yield* images.create({ caller, creation })
      expect(submitted).toMatchObject({ status: "PROCESSING", quote: (usd * 6n) / 100n, charge: undefined })
      const sizes = yield* Effect.flip(images.create({ caller, creation: { ...creation, size: "1x1" } }))
      expect(sizes).toMatchObject({
        field: "size",
        rule: "must be one of auto, 1024x1024, 512x512, 768x1024, 576x1024, 1024x768, 1024x576, 1536x1024"
      })
      expect(yield* Effect.flip(images.create({ caller, creation: { ...creation, model: "x" } }))).toMatchObject({
        field: "model",
        rule: "must be one of vendor, gpt-image-1"
      })
      const edit = { ...creation, images: ["data:image/png;base64,AAAA"] }
      expect(yield* Effect.flip(images.create({ caller, creation: edit }))).toMatchObject({ field: "image" })
    })
  )
})

const cent = 10_000_000_000_000_000n
const editor: ImageProvider = {
  ...provider,
  image_to_image_endpoint: "sandbox/image-to-image",
  edits: { endpoint: "sandbox/edit", images_max: 1, mask: false },
  edit_price: (7n * cent) as UnitPrice,
  edit_price_by_size: { square: (2n * cent) as UnitPrice },
  edit_price_by_pixels: { "1536x1024": (9n * cent) as UnitPrice }
}
const sameForEdits: ImageProvider = {
  ...editor,
  id: "same",
  aliases: [],
  edit_price: undefined,
  edit_price_by_size: {},
  edit_price_by_pixels: {}
}
const editors = Images.layer.pipe(
  Layer.provideMerge(Jobs.layer),
  Layer.provide(Layer.succeed(ImageProviders, [editor, sameForEdits]))
)

layer(over(Layer.merge(editors, Explanations.layer), "images-queue"), { excludeTestServices: true })(
  "images that are made from images",
  (it) => {
    const source_url = "data:image/png;base64,AAAA"
    const cents = usd / 100n

    it.effect("have prices of their own, by which they are set aside, charged and explained", () =>
      Effect.gen(function* () {
        const caller = yield* person(usd)
        const { generate } = yield* Images
        const { of } = yield* Explanations
        const charged = Effect.fnUntraced(function* (more: Partial<ImageRequest>) {
          const { charge, quote } = yield* generate({ caller, request: { ...request, num_images: 1, ...more } })
          expect(charge?.charged).toBe(quote)
          const { price } = yield* of({ caller, usage_id: charge!.usage_id })
          return [quote / cents, price!.lines[0]!.unit, price!.version] as const
        })
        const [plain, unit, version] = yield* charged({})
        expect([plain, unit]).toEqual([4n, "image"])
        const edited = yield* charged({ source_url })
        expect(edited.slice(0, 2)).toEqual([7n, "edited image"])
        expect(edited[2]).not.toBe(version)
        expect((yield* charged({ image_size: "square" })).slice(0, 2)).toEqual([1n, "image"])
        expect((yield* charged({ source_url, image_size: "square" })).slice(0, 2)).toEqual([2n, "edited image"])
        // Without prices of its own an edit costs what any image costs, by the same version.
        expect(yield* charged({ source_url, provider: "same" })).toEqual([4n, "image", version])
      })
    )

    it.effect("have them with OpenAI's fields too", () =>
      Effect.gen(function* () {
        const caller = yield* person(usd)
        const { create } = yield* Images
        const quote = (more: object) =>
          Effect.map(create({ caller, creation: { prompt: "a lighthouse", ...more } }), ({ quote }) => quote / cents)
        const images = [source_url]
        expect(yield* quote({})).toBe(4n)
        expect(yield* quote({ images })).toBe(7n)
        expect(yield* quote({ images, size: "512x512" })).toBe(2n)
        expect(yield* quote({ images, size: "1536x1024" })).toBe(9n)
        expect(yield* quote({ images, size: "1536x1024", model: "same" })).toBe(6n)
      })
    )

    it("stand in the list of providers", () => {
      const [own, same, none] = listOf([editor, sameForEdits, provider]).providers
      const of = (entry: typeof own, size: string) => entry!.prices.find((one) => one.size === size)
      expect(of(own, "square_hd")).toEqual({ size: "square_hd", usd_per_image: 0.04, usd_per_edited_image: 0.07 })
      expect(of(own, "square")).toEqual({ size: "square", usd_per_image: 0.01, usd_per_edited_image: 0.02 })
      expect(of(own, "1536x1024")).toEqual({ size: "1536x1024", usd_per_image: 0.06, usd_per_edited_image: 0.09 })
      expect(of(same, "square")).toEqual({ size: "square", usd_per_image: 0.01, usd_per_edited_image: 0.01 })
      expect(of(none, "square")).toEqual({ size: "square", usd_per_image: 0.01 })
    })
  }
)
