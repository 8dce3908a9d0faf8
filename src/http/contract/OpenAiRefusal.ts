/** Builds refusals in the format that OpenAI's clients parse, with our code and details. */
import type { Shape } from "./Annotations.ts"

/** The protocol's error type for each status. */
const kinds: Readonly<Record<number, string>> = {
  401: "authentication_error",
  402: "insufficient_quota",
  403: "permission_error",
  429: "rate_limit_error"
}

const kindOf = (status: number): string => kinds[status] ?? (status < 500 ? "invalid_request_error" : "server_error")

export const openAiRefusal: Shape = {
  write: ({ body: { code, details, error }, status }) => ({
    error: {
      message: error,
      type: kindOf(status),
      param: typeof details?.field === "string" && details.field !== "" ? details.field : null,
      code: code ?? null,
      ...(details !== undefined && { details })
    }
  }),
  identifier: "OpenAiError",
  schema: {
    type: "object",
    required: ["error"],
    properties: {
      error: {
        type: "object",
        required: ["message", "type", "param", "code"],
        properties: {
          message: { type: "string" },
          type: {
            type: "string",
            enum: [...new Set([...Object.values(kinds), "invalid_request_error", "server_error"])]
          },
          param: { anyOf: [{ type: "string" }, { type: "null" }] },
          code: { anyOf: [{ type: "string" }, { type: "null" }] },
          details: { type: "object", additionalProperties: {} }
        }
      }
    }
  }
}
