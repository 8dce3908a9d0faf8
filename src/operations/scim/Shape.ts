/** The format of SCIM's error responses (RFC 7644, section 3.12). */
import type { Shape } from "../../http/contract/Annotations.ts"

const urn = "urn:ietf:params:scim:api:messages:2.0:Error"

const types: ReadonlySet<string> = new Set(["uniqueness", "invalidFilter", "invalidValue", "invalidPath"])

/** Returns the `scimType` for a problem. A body that cannot be decoded counts as an invalid value. */
const typeOf = (code: string | undefined): string | undefined => {
  if (code === "invalid_request") return "invalidValue"
  return code !== undefined && types.has(code) ? code : undefined
}

export const scimRefusal: Shape = {
  write: ({ body, code, status }) => {
    const scimType = typeOf(code)
    return { schemas: [urn], status: String(status), detail: body.error, ...(scimType !== undefined && { scimType }) }
  },
  identifier: "ScimError",
  schema: {
    type: "object",
    required: ["schemas", "status", "detail"],
    properties: {
      schemas: { type: "array", items: { type: "string", enum: [urn] } },
      status: { type: "string" },
      detail: { type: "string" },
      scimType: { type: "string", enum: [...types] }
    }
  }
}
