/** The responses of SCIM's discovery endpoints. They describe features, resource types and attributes. */
import type { Resource } from "./Resource.ts"
import { listed } from "./Resource.ts"
import * as Group from "./Group.ts"
import * as User from "./User.ts"

const core = "urn:ietf:params:scim:schemas:core:2.0"

export const serviceProviderConfig = (base: string): Resource => ({
  schemas: [`${core}:ServiceProviderConfig`],
  patch: { supported: true },
  bulk: { supported: false, maxOperations: 0, maxPayloadSize: 0 },
  filter: { supported: true, maxResults: 200 },
  changePassword: { supported: false },
  sort: { supported: false },
  etag: { supported: false },
  authenticationSchemes: [
    {
      type: "oauthbearertoken",
      name: "Bearer",
      description: "The bearer token in the environment variable that the `scim` entry of the configuration specifies",
      primary: true
    }
  ],
  meta: { resourceType: "ServiceProviderConfig", location: `${base}/ServiceProviderConfig` }
})

const typeOf = (base: string, name: "User" | "Group", schema: string) => ({
  schemas: [`${core}:ResourceType`],
  id: name,
  name,
  endpoint: `/${name}s`,
  schema,
  meta: { resourceType: "ResourceType", location: `${base}/ResourceTypes/${name}` }
})

const listResponse = (resources: ReadonlyArray<Resource>): Resource =>
  listed({ total: resources.length, start: 1, resources })

export const resourceTypes = (base: string): Resource =>
  listResponse([typeOf(base, "User", User.schema), typeOf(base, "Group", Group.schema)])

interface More {
  readonly type?: "string" | "boolean" | "complex"
  readonly multiValued?: boolean
  readonly required?: boolean
  readonly uniqueness?: "none" | "server"
  readonly subAttributes?: ReadonlyArray<object>
}

const attribute = (name: string, more: More = {}) => ({
  name,
  type: "string",
  multiValued: false,
  required: false,
  caseExact: false,
  mutability: "readWrite",
  returned: "default",
  uniqueness: "none",
  ...more
})

const schemaOf = (base: string, id: string, name: string, attributes: ReadonlyArray<object>): Resource => ({
  schemas: [`${core}:Schema`],
  id,
  name,
  attributes,
  meta: { resourceType: "Schema", location: `${base}/Schemas/${id}` }
})

export const schemas = (base: string): Resource =>
  listResponse([
    schemaOf(base, User.schema, "User", [
      attribute("userName", { required: true, uniqueness: "server" }),
      attribute("name", { type: "complex", subAttributes: [attribute("givenName"), attribute("familyName")] }),
      attribute("displayName"),
      attribute("emails", {
        type: "complex",
        multiValued: true,
        subAttributes: [attribute("value"), attribute("type")]
      }),
      attribute("active", { type: "boolean" })
    ]),
    schemaOf(base, Group.schema, "Group", [
      attribute("displayName", { required: true, uniqueness: "server" }),
      attribute("members", { type: "complex", multiValued: true, subAttributes: [attribute("value")] })
    ])
  ])
