/** The translations of all protocols. */
import { chat } from "./chat/Chat.ts"
import { messages } from "./messages/Messages.ts"
import { responses } from "./responses/Responses.ts"

export const translations = { chat, messages, responses } as const
