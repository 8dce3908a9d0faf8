/** Endpoints for generating images, with or without polling, and the lists of image providers. */
import { MeteredRefusal } from "../metered/Problems.ts"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, Multipart, OpenApi } from "@effect/platform"
import { Schema } from "effect"
import { Example, Metered } from "../../http/contract/Documented.ts"
import { ReadsOwnBody, RefusalShape } from "../../http/contract/Annotations.ts"
import { openAiRefusal } from "../../http/contract/OpenAiRefusal.ts"
import { InvalidRequest } from "../../kernel/InvalidRequest.ts"
import { KeyOrToken } from "../../people/credentials/Security.ts"
import { ProviderNames } from "../../upstream/models/Provider.ts"
import { ImageAnswer, ImageRequest, ImageStatusQuery } from "./Image.ts"
import { OpenAiEditFields, OpenAiImageRequest, OpenAiImages } from "./OpenAi.ts"
import { ImageProviderList } from "./Prices.ts"
import { ImageNotFound, ImagesNotFetched, ImagesPending, ImagesTooLarge } from "./Problems.ts"

const EditForm = HttpApiSchema.Multipart(
  Schema.Struct({
    image: Multipart.FilesSchema,
    mask: Schema.optional(Multipart.SingleFileSchema),
    ...OpenAiEditFields.fields
  })
)

const generate = <const Name extends string>(name: Name, path: `/${string}`) =>
  HttpApiEndpoint.post(name, path)
    .setPayload(ImageRequest)
    .addSuccess(ImageAnswer)
    .addError(MeteredRefusal)
    .annotate(ReadsOwnBody, true)
    .annotate(Example, { body: { prompt: "a lighthouse at dusk", num_images: 1, image_size: "square_hd" } })
    .annotate(Metered, { charge_known: true })
    .annotate(OpenApi.Summary, "Generate images (charged when they are ready)")

const status = <const Name extends string>(name: Name, path: `/${string}`) =>
  HttpApiEndpoint.get(name, path)
    .setUrlParams(ImageStatusQuery)
    .addSuccess(ImageAnswer)
    .addError(InvalidRequest)
    .addError(ImageNotFound)
    .annotate(Example, { query: { request_id: "{image_request_id}" } })
    .annotate(OpenApi.Summary, "Get the status of an image request")

export class ImagesApi extends HttpApiGroup.make("images")
  .add(generate("generate", "/v1/images/generate"))
  .add(generate("toolGenerate", "/v1/tools/images/generate"))
  .add(
    HttpApiEndpoint.post("createImage", "/v1/images/generations")
      .setPayload(OpenAiImageRequest)
      .addSuccess(OpenAiImages)
      .addError(MeteredRefusal)
      .addError(ImagesPending)
      .addError(ImagesNotFetched)
      .annotate(RefusalShape, openAiRefusal)
      .annotate(ReadsOwnBody, true)
      .annotate(Example, { body: { prompt: "a lighthouse at dusk", size: "1024x1024" } })
      .annotate(Metered, { charge_known: true })
      .annotate(
        OpenApi.Summary,
        "Generate images with OpenAI's fields, on OpenAI's path; the response waits for the images"
      )
  )
  .add(
    HttpApiEndpoint.post("editImage", "/v1/images/edits")
      .setPayload(EditForm)
      .addSuccess(OpenAiImages)
      .addError(ImagesTooLarge)
      .addError(MeteredRefusal)
      .addError(ImagesPending)
      .addError(ImagesNotFetched)
      .annotate(RefusalShape, openAiRefusal)
      .annotate(ReadsOwnBody, true)
      .annotate(Example, { body: { prompt: "the same at night" } })
      .annotate(Metered, { charge_known: true })
      .annotate(OpenApi.Summary, "Edit images with OpenAI's fields; the response waits for the images")
  )
  .add(status("status", "/v1/images/status"))
  .add(status("toolStatus", "/v1/tools/images/status"))
  .add(
    HttpApiEndpoint.get("providers", "/v1/images/providers")
      .addSuccess(ProviderNames)
      .annotate(OpenApi.Summary, "List the names of the image providers")
  )
  .add(
    HttpApiEndpoint.get("toolProviders", "/v1/tools/images/providers")
      .addSuccess(ImageProviderList)
      .annotate(OpenApi.Summary, "List the image providers with descriptions and prices")
  )
  .middleware(KeyOrToken) {}
