/** Routes for SCIM 2.0. Requests and responses use SCIM's format, without the envelope. */
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "@effect/platform"
import { Schema } from "effect"
import { RefusalShape } from "../../http/contract/Annotations.ts"
import { InvalidRequest } from "../../kernel/InvalidRequest.ts"
import { InvalidFilter, InvalidPath, InvalidValue, NotUnique, ResourceNotFound } from "./Problems.ts"
import { Resource } from "./Resource.ts"
import { ScimToken } from "./Security.ts"
import { scimRefusal } from "./Shape.ts"

const ofId = Schema.Struct({ id: Schema.String })

const described = (description: string) => Schema.optional(Schema.String.annotations({ description }))

const excluded = { excludedAttributes: described("`members` omits group members from the response") }

const query = Schema.Struct({
  filter: described('One comparison: `userName eq "ada@example.com"`'),
  startIndex: described("The number of the page's first resource, starting at 1"),
  count: described("Resources per page: 100 by default, at most 200"),
  ...excluded
})

const Answer = Resource.pipe(HttpApiSchema.withEncoding({ kind: "Json", contentType: "application/scim+json" }))
const created = Answer.annotations(HttpApiSchema.annotations({ status: 201, identifier: "ScimCreated" }))

const get = <const Name extends string>(name: Name, path: `/${string}`, summary: string) =>
  HttpApiEndpoint.get(name, path).addSuccess(Answer).annotate(OpenApi.Summary, summary)

export class ScimApi extends HttpApiGroup.make("scim")
  .add(get("serviceProviderConfig", "/scim/v2/ServiceProviderConfig", "Get the SCIM features of this service"))
  .add(get("resourceTypes", "/scim/v2/ResourceTypes", "List the kinds of resources: users and groups"))
  .add(get("schemas", "/scim/v2/Schemas", "List the attributes of users and groups"))
  .add(
    HttpApiEndpoint.get("users", "/scim/v2/Users")
      .setUrlParams(query)
      .addSuccess(Answer)
      .addError(InvalidFilter)
      .annotate(OpenApi.Summary, "List the directory's users, by page or filtered by userName, externalId or id")
  )
  .add(
    HttpApiEndpoint.post("createUser", "/scim/v2/Users")
      .setPayload(Resource)
      .addSuccess(created)
      .addError(InvalidValue)
      .addError(NotUnique)
      .annotate(OpenApi.Summary, "Create a person, or adopt the account that has verified the same address")
  )
  .add(
    HttpApiEndpoint.get("user", "/scim/v2/Users/:id")
      .setPath(ofId)
      .addSuccess(Answer)
      .addError(ResourceNotFound)
      .annotate(OpenApi.Summary, "Get one user")
  )
  .add(
    HttpApiEndpoint.put("replaceUser", "/scim/v2/Users/:id")
      .setPath(ofId)
      .setPayload(Resource)
      .addSuccess(Answer)
      .addError(ResourceNotFound)
      .addError(InvalidValue)
      .addError(NotUnique)
      .annotate(OpenApi.Summary, "Replace a user's attributes; active: false suspends the person")
  )
  .add(
    HttpApiEndpoint.patch("patchUser", "/scim/v2/Users/:id")
      .setPath(ofId)
      .setPayload(Resource)
      .addSuccess(Answer)
      .addError(ResourceNotFound)
      .addError(InvalidValue)
      .addError(InvalidPath)
      .addError(NotUnique)
      .annotate(OpenApi.Summary, "Change individual attributes of a user; active: false suspends the person")
  )
  .add(
    HttpApiEndpoint.del("removeUser", "/scim/v2/Users/:id")
      .setPath(ofId)
      .addSuccess(HttpApiSchema.NoContent)
      .addError(ResourceNotFound)
      .annotate(OpenApi.Summary, "Suspend a person and revoke their keys, without deleting credit or records")
  )
  .add(
    HttpApiEndpoint.get("groups", "/scim/v2/Groups")
      .setUrlParams(query)
      .addSuccess(Answer)
      .addError(InvalidFilter)
      .annotate(OpenApi.Summary, "List the directory's groups, by page or filtered by displayName, externalId or id")
  )
  .add(
    HttpApiEndpoint.post("createGroup", "/scim/v2/Groups")
      .setPayload(Resource)
      .addSuccess(created)
      .addError(InvalidValue)
      .addError(NotUnique)
      .annotate(OpenApi.Summary, "Create a group; configured rules add its members to teams")
  )
  .add(
    HttpApiEndpoint.get("group", "/scim/v2/Groups/:id")
      .setPath(ofId)
      .setUrlParams(Schema.Struct(excluded))
      .addSuccess(Answer)
      .addError(ResourceNotFound)
      .annotate(OpenApi.Summary, "Get one group with its members")
  )
  .add(
    HttpApiEndpoint.put("replaceGroup", "/scim/v2/Groups/:id")
      .setPath(ofId)
      .setPayload(Resource)
      .addSuccess(Answer)
      .addError(ResourceNotFound)
      .addError(InvalidValue)
      .addError(NotUnique)
      .annotate(OpenApi.Summary, "Replace a group's name and members")
  )
  .add(
    HttpApiEndpoint.patch("patchGroup", "/scim/v2/Groups/:id")
      .setPath(ofId)
      .setPayload(Resource)
      .addSuccess(Answer)
      .addError(ResourceNotFound)
      .addError(InvalidValue)
      .addError(InvalidPath)
      .addError(NotUnique)
      .annotate(OpenApi.Summary, "Add, remove or replace members of a group, or rename the group")
  )
  .add(
    HttpApiEndpoint.del("removeGroup", "/scim/v2/Groups/:id")
      .setPath(ofId)
      .addSuccess(HttpApiSchema.NoContent)
      .addError(ResourceNotFound)
      .annotate(OpenApi.Summary, "Delete a group and remove its members from its teams")
  )
  .addError(InvalidRequest)
  .annotateEndpoints(RefusalShape, scimRefusal)
  .middleware(ScimToken) {}
