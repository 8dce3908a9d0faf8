/** The services of the outside world. Faults, the list of calls and `Settings.without` use these names. */
import * as Billing from "./Billing.ts"
import * as Bedrock from "./Bedrock.ts"
import * as Chat from "./Chat.ts"
import * as Decisions from "./Decisions.ts"
import * as Embeddings from "./Embeddings.ts"
import * as Generation from "./Generation.ts"
import * as Google from "./Google.ts"
import * as Issuer from "./Issuer.ts"
import * as Mail from "./Mail.ts"
import * as Messages from "./Messages.ts"
import * as Payments from "./Payments.ts"
import * as Rerank from "./Rerank.ts"
import * as Responses from "./Responses.ts"
import * as Search from "./Search.ts"
import * as Speech from "./Speech.ts"
import * as Transcription from "./Transcription.ts"
import * as Witnesses from "./Witnesses.ts"
import type { Make } from "./Outside.ts"

export const world = {
  chat: Chat.make,
  messages: Messages.make,
  responses: Responses.make,
  google: Google.make,
  bedrock: Bedrock.make,
  decisions: Decisions.make,
  embeddings: Embeddings.make,
  rerank: Rerank.make,
  images: Generation.images,
  media: Generation.media,
  search: Search.make,
  speech: Speech.make,
  transcription: Transcription.make,
  identity: Issuer.make,
  mail: Mail.make,
  payments: Payments.make,
  billing: Billing.make,
  witnesses: Witnesses.make
} satisfies Readonly<Record<string, Make>>

export type ServiceName = keyof typeof world
export const serviceNames = Object.keys(world) as ReadonlyArray<ServiceName>
