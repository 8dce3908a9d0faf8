/** The translations, by protocol. */
import { bedrock } from "./bedrock/Bedrock.ts"
import { chat } from "./chat/Chat.ts"
import type { Protocol } from "./conversation/Conversation.ts"
import { google } from "./google/Google.ts"
import { messages } from "./messages/Messages.ts"
import { responses } from "./responses/Responses.ts"
import type { Translation } from "./conversation/Translation.ts"

export const translations: Readonly<Record<Protocol, Translation>> = { chat, messages, responses, google, bedrock }
