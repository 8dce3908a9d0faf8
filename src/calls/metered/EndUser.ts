/** Reads the end user that a request body identifies, in the fields of OpenAI's protocols. */
import { Effect, Schema } from "effect"
import type { Caller } from "../../kernel/Caller.ts"
import { InvalidRequest } from "../../kernel/InvalidRequest.ts"
import { ofBody } from "../../kernel/Labels.ts"
import { hashOf } from "./TextHash.ts"

const text = Schema.optionalWith(Schema.String, { nullable: true })

/** The fields in a JSON body. They are not sent upstream. */
export const endUserFields = { user: text, safety_identifier: text }

export const endUserParts = {
  user: Schema.optional(Schema.String),
  safety_identifier: Schema.optional(Schema.String)
}

interface Named {
  readonly user?: string | undefined
  readonly safety_identifier?: string | undefined
}

/** Returns the caller, labelled with the end user that the request identifies. */
export const forEndUser = (
  caller: Caller,
  { safety_identifier, user }: Named
): Effect.Effect<Caller, InvalidRequest> => {
  const one = ofBody(caller, { user, safety_identifier }, false, hashOf)
  return one instanceof InvalidRequest ? one : Effect.succeed(one)
}
