/** What the image route says of a size that there is not. */
import { afterAll, beforeAll, expect, it } from "vitest"
import { start } from "../../support/Service.ts"
import type { Service } from "../../support/Service.ts"

let service: Service
beforeAll(async () => {
  service = await start()
})
afterAll(() => service.discard())

it("every size is named", async () => {
  const { token } = await service.signIn("paints@example.com")
  const { body, status } = await service.call("/v1/images/generate", { token, json: { prompt: "x", image_size: "z" } })
  expect([status, body.details.rule]).toEqual([
    400,
    "must be one of square_hd, square, portrait_4_3, portrait_16_9, landscape_4_3, landscape_16_9"
  ])
})
