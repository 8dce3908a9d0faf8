/** Formats errors for the protocol: its error types, plus the service's codes and details. */
import { anthropicRateHeaders } from "../../books/gate/RateHeaders.ts"
import type { Shape } from "../../http/contract/Annotations.ts"

/** The protocol's error type for each status. */
const kinds: Readonly<Record<number, string>> = {
  401: "authentication_error",
  402: "billing_error",
  403: "permission_error",
  404: "not_found_error",
  413: "request_too_large",
  429: "rate_limit_error",
  503: "overloaded_error",
  504: "timeout_error",
  529: "overloaded_error"
}

const kindOf = (status: number): string => kinds[status] ?? (status < 500 ? "invalid_request_error" : "api_error")

export const messagesRefusal: Shape = {
  write: ({ body: { code, details, error }, status }, request_id) => ({
    type: "error",
    error: {
      type: kindOf(status),
      message: error,
      ...(code !== undefined && { code }),
      ...(details !== undefined && { details })
    },
    request_id
  }),
  rateHeaders: anthropicRateHeaders,
  identifier: "MessagesError",
  schema: {
    type: "object",
    required: ["type", "error"],
    properties: {
      type: { type: "string", enum: ["error"] },
      error: {
        type: "object",
        required: ["type", "message"],
        properties: {
          type: { type: "string", enum: [...new Set([...Object.values(kinds), "invalid_request_error", "api_error"])] },
          message: { type: "string" },
          code: { type: "string" },
          details: { type: "object", additionalProperties: {} }
        }
      },
      request_id: { type: "string" }
    }
  }
}
