/** A model at `vendor`. A prompt token costs 1 nano-USD, an answer token 10. */
import type { Model } from "../../src/calls/prompts/Model.ts"
import type { UnitPrice } from "../../src/kernel/Price.ts"

export const smallModel: Model = {
  id: "small",
  name: "Small",
  description: "",
  owned_by: "system",
  created: 1,
  input_modalities: ["text"],
  output_modalities: ["text"],
  context_length: 8_000,
  output_tokens_max: 1_000,
  attachment_tokens_max: 100,
  added_tokens_max: 0,
  tool_tokens_max: 0,
  prompt_price: 1_000_000_000n as UnitPrice,
  completion_price: 10_000_000_000n as UnitPrice,
  request_price: 0n as UnitPrice,
  extras: [],
  routes: [{ upstream: "vendor", model: "vendor-small", limit_field: "max_tokens" }]
}
