/** What upstreams of the chat protocol report, in the forms that they have for it. */
import { describe, expect, it } from "vitest"
import { usageOf } from "../../src/protocols/chat/Usage.ts"

const known = (usage: unknown) =>
  Object.fromEntries(Object.entries(usageOf(usage) ?? {}).filter(([, n]) => n !== undefined))

describe("the usage of an answer", () => {
  it.each<[string, object, object]>([
    [
      "of OpenAI",
      {
        prompt_tokens: 100,
        completion_tokens: 50,
        total_tokens: 150,
        prompt_tokens_details: { cached_tokens: 40, audio_tokens: 10 },
        completion_tokens_details: { reasoning_tokens: 30, audio_tokens: 5, accepted_prediction_tokens: 0 }
      },
      {
        prompt_tokens: 100,
        completion_tokens: 50,
        cached_tokens: 40,
        prompt_audio_tokens: 10,
        reasoning_tokens: 30,
        completion_audio_tokens: 5
      }
    ],
    [
      "of OpenRouter",
      {
        prompt_tokens: 100,
        completion_tokens: 50,
        total_tokens: 150,
        cost: 0.1,
        prompt_tokens_details: { cached_tokens: 1, cache_write_tokens: 2 },
        completion_tokens_details: { reasoning_tokens: 3, image_tokens: 4 }
      },
      {
        prompt_tokens: 100,
        completion_tokens: 50,
        cached_tokens: 1,
        cache_write_tokens: 2,
        reasoning_tokens: 3,
        completion_image_tokens: 4,
        vendor_cost: 0.1
      }
    ],
    [
      "of DeepSeek",
      { prompt_tokens: 100, completion_tokens: 50, prompt_cache_hit_tokens: 60, prompt_cache_miss_tokens: 40 },
      { prompt_tokens: 100, completion_tokens: 50, cached_tokens: 60 }
    ],
    [
      "of Moonshot",
      { prompt_tokens: 100, completion_tokens: 50, total_tokens: 150, cached_tokens: 60 },
      { prompt_tokens: 100, completion_tokens: 50, cached_tokens: 60 }
    ],
    [
      "of xAI, whose answers are counted without thoughts",
      {
        prompt_tokens: 100,
        completion_tokens: 50,
        total_tokens: 180,
        prompt_tokens_details: { text_tokens: 100, image_tokens: 20, cached_tokens: 0 },
        completion_tokens_details: { reasoning_tokens: 30 }
      },
      {
        prompt_tokens: 100,
        completion_tokens: 80,
        cached_tokens: 0,
        prompt_image_tokens: 20,
        reasoning_tokens: 30
      }
    ],
    [
      "of a server that counts the cache as Anthropic does",
      {
        prompt_tokens: 10,
        completion_tokens: 50,
        total_tokens: 160,
        cache_read_input_tokens: 70,
        cache_creation_input_tokens: 30,
        cache_creation: { ephemeral_5m_input_tokens: 10, ephemeral_1h_input_tokens: 20 }
      },
      {
        prompt_tokens: 110,
        completion_tokens: 50,
        cached_tokens: 70,
        cache_write_tokens: 10,
        cache_write_1h_tokens: 20
      }
    ],
    [
      "of a server whose prompt has the cache in it",
      { prompt_tokens: 110, completion_tokens: 50, total_tokens: 160, cache_read_input_tokens: 70 },
      { prompt_tokens: 110, completion_tokens: 50, cached_tokens: 70 }
    ],
    [
      "whose sum says something else",
      { prompt_tokens: 10, completion_tokens: 5, total_tokens: 1e9, reasoning_tokens: 3 },
      { prompt_tokens: 10, completion_tokens: 5, reasoning_tokens: 3 }
    ],
    [
      "with figures that are none",
      { prompt_tokens: -1, completion_tokens: "5", prompt_tokens_details: "x", cached_tokens: 0.5 },
      {}
    ],
    [
      "with more than can be counted",
      {
        prompt_tokens: 5,
        completion_tokens: Number.POSITIVE_INFINITY,
        total_tokens: Number.POSITIVE_INFINITY,
        cache_creation_input_tokens: Number.POSITIVE_INFINITY,
        cache_creation: { ephemeral_1h_input_tokens: Number.POSITIVE_INFINITY }
      },
      {
        prompt_tokens: 5,
        completion_tokens: Number.POSITIVE_INFINITY,
        cache_write_tokens: 0,
        cache_write_1h_tokens: Number.POSITIVE_INFINITY
      }
    ],
    ["that is a list", [], {}]
  ])("%s", (_, usage, expected) => {
    expect(known(usage)).toEqual(expected)
  })
})
