/** Conversations and answers, each written by hand as every protocol has it. */
import type { Protocol } from "../../src/protocols/conversation/Conversation.ts"

type Json = Readonly<Record<string, unknown>>

/** The same request in each protocol; a text is the reason why that protocol cannot say it, with the field that is refused. */
export interface RequestCase {
  readonly name: string
  readonly wires: Readonly<Record<Protocol, Json | string>>
}

const png = "iVBORw0KGgo="
const pdf = "JVBERi0xLjQ="
const weather = {
  type: "object",
  properties: { city: { type: "string" } },
  required: ["city"],
  additionalProperties: false
}

const bedrockLimit = { inferenceConfig: { maxTokens: 1000 } }
const googleLimit = { generationConfig: { maxOutputTokens: 1000 } }
const chatLimit = { model: "m", max_completion_tokens: 1000 }
const messagesLimit = { model: "m", max_tokens: 1000 }
const responsesLimit = { model: "m", max_output_tokens: 1000, store: false }

export const requests: ReadonlyArray<RequestCase> = [
  {
    name: "a text with instructions",
    wires: {
      chat: {
        ...chatLimit,
        messages: [
          { role: "system", content: "Be brief." },
          { role: "user", content: "Hello" }
        ],
        temperature: 0.5,
        top_p: 0.9
      },
      messages: {
        ...messagesLimit,
        system: "Be brief.",
        messages: [{ role: "user", content: [{ type: "text", text: "Hello" }] }],
        temperature: 0.5,
        top_p: 0.9
      },
      responses: {
        ...responsesLimit,
        instructions: "Be brief.",
        input: [{ role: "user", content: [{ type: "input_text", text: "Hello" }] }],
        temperature: 0.5,
        top_p: 0.9
      },
      google: {
        systemInstruction: { parts: [{ text: "Be brief." }] },
        contents: [{ role: "user", parts: [{ text: "Hello" }] }],
        generationConfig: { maxOutputTokens: 1000, temperature: 0.5, topP: 0.9 }
      },
      bedrock: {
        system: [{ text: "Be brief." }],
        messages: [{ role: "user", content: [{ text: "Hello" }] }],
        inferenceConfig: { maxTokens: 1000, temperature: 0.5, topP: 0.9 }
      }
    }
  },
  {
    name: "stop sequences",
    wires: {
      chat: { ...chatLimit, messages: [{ role: "user", content: "Count" }], stop: ["5", "6"] },
      messages: {
        ...messagesLimit,
        messages: [{ role: "user", content: [{ type: "text", text: "Count" }] }],
        stop_sequences: ["5", "6"]
      },
      responses: "the upstream of this model accepts no stop sequences",
      google: {
        contents: [{ role: "user", parts: [{ text: "Count" }] }],
        generationConfig: { maxOutputTokens: 1000, stopSequences: ["5", "6"] }
      },
      bedrock: {
        messages: [{ role: "user", content: [{ text: "Count" }] }],
        inferenceConfig: { maxTokens: 1000, stopSequences: ["5", "6"] }
      }
    }
  },
  {
    name: "tools, called at once, with their results",
    wires: {
      chat: {
        ...chatLimit,
        messages: [
          { role: "user", content: "Weather?" },
          {
            role: "assistant",
            content: "Let me see.",
            tool_calls: [
              { id: "call_1", type: "function", function: { name: "weather", arguments: '{"city":"Bern"}' } },
              { id: "call_2", type: "function", function: { name: "weather", arguments: '{"city":"Rome"}' } }
            ]
          },
          { role: "tool", tool_call_id: "call_1", content: "rain" },
          { role: "tool", tool_call_id: "call_2", content: "sun" },
          { role: "user", content: "So?" }
        ],
        tools: [
          {
            type: "function",
            function: { name: "weather", description: "Of a city", parameters: weather, strict: true }
          }
        ],
        tool_choice: "required"
      },
      messages: {
        ...messagesLimit,
        messages: [
          { role: "user", content: [{ type: "text", text: "Weather?" }] },
          {
            role: "assistant",
            content: [
              { type: "text", text: "Let me see." },
              { type: "tool_use", id: "call_1", name: "weather", input: { city: "Bern" } },
              { type: "tool_use", id: "call_2", name: "weather", input: { city: "Rome" } }
            ]
          },
          {
            role: "user",
            content: [
              { type: "tool_result", tool_use_id: "call_1", content: "rain" },
              { type: "tool_result", tool_use_id: "call_2", content: "sun" },
              { type: "text", text: "So?" }
            ]
          }
        ],
        tools: [{ name: "weather", description: "Of a city", input_schema: weather, strict: true }],
        tool_choice: { type: "any" }
      },
      responses: {
        ...responsesLimit,
        input: [
          { role: "user", content: [{ type: "input_text", text: "Weather?" }] },
          { role: "assistant", content: [{ type: "output_text", text: "Let me see." }] },
          { type: "function_call", call_id: "call_1", name: "weather", arguments: '{"city":"Bern"}' },
          { type: "function_call", call_id: "call_2", name: "weather", arguments: '{"city":"Rome"}' },
          { type: "function_call_output", call_id: "call_1", output: "rain" },
          { type: "function_call_output", call_id: "call_2", output: "sun" },
          { role: "user", content: [{ type: "input_text", text: "So?" }] }
        ],
        tools: [{ type: "function", name: "weather", description: "Of a city", parameters: weather, strict: true }],
        tool_choice: "required"
      },
      google: {
        ...googleLimit,
        contents: [
          { role: "user", parts: [{ text: "Weather?" }] },
          {
            role: "model",
            parts: [
              { text: "Let me see." },
              {
                functionCall: { id: "call_1", name: "weather", args: { city: "Bern" } },
                thoughtSignature: "skip_thought_signature_validator"
              },
              { functionCall: { id: "call_2", name: "weather", args: { city: "Rome" } } }
            ]
          },
          {
            role: "user",
            parts: [
              { functionResponse: { id: "call_1", name: "weather", response: { output: "rain" } } },
              { functionResponse: { id: "call_2", name: "weather", response: { output: "sun" } } },
              { text: "So?" }
            ]
          }
        ],
        tools: [
          { functionDeclarations: [{ name: "weather", description: "Of a city", parametersJsonSchema: weather }] }
        ],
        toolConfig: { functionCallingConfig: { mode: "ANY" } }
      },
      bedrock: {
        ...bedrockLimit,
        messages: [
          { role: "user", content: [{ text: "Weather?" }] },
          {
            role: "assistant",
            content: [
              { text: "Let me see." },
              { toolUse: { toolUseId: "call_1", name: "weather", input: { city: "Bern" } } },
              { toolUse: { toolUseId: "call_2", name: "weather", input: { city: "Rome" } } }
            ]
          },
          {
            role: "user",
            content: [
              { toolResult: { toolUseId: "call_1", content: [{ text: "rain" }] } },
              { toolResult: { toolUseId: "call_2", content: [{ text: "sun" }] } },
              { text: "So?" }
            ]
          }
        ],
        toolConfig: {
          tools: [
            { toolSpec: { name: "weather", description: "Of a city", inputSchema: { json: weather }, strict: true } }
          ],
          toolChoice: { any: {} }
        }
      }
    }
  },
  {
    name: "one tool at a time, one that must be called",
    wires: {
      chat: {
        ...chatLimit,
        messages: [{ role: "user", content: "Go" }],
        tools: [{ type: "function", function: { name: "go", parameters: { type: "object", properties: {} } } }],
        tool_choice: { type: "function", function: { name: "go" } },
        parallel_tool_calls: false
      },
      messages: {
        ...messagesLimit,
        messages: [{ role: "user", content: [{ type: "text", text: "Go" }] }],
        tools: [{ name: "go", input_schema: { type: "object", properties: {} } }],
        tool_choice: { type: "tool", name: "go", disable_parallel_tool_use: true }
      },
      responses: {
        ...responsesLimit,
        input: [{ role: "user", content: [{ type: "input_text", text: "Go" }] }],
        tools: [{ type: "function", name: "go", parameters: { type: "object", properties: {} }, strict: false }],
        tool_choice: { type: "function", name: "go" },
        parallel_tool_calls: false
      },
      google: {
        ...googleLimit,
        contents: [{ role: "user", parts: [{ text: "Go" }] }],
        tools: [{ functionDeclarations: [{ name: "go", parametersJsonSchema: { type: "object", properties: {} } }] }],
        toolConfig: { functionCallingConfig: { mode: "ANY", allowedFunctionNames: ["go"] } }
      },
      bedrock: {
        ...bedrockLimit,
        messages: [{ role: "user", content: [{ text: "Go" }] }],
        toolConfig: {
          tools: [{ toolSpec: { name: "go", inputSchema: { json: { type: "object", properties: {} } } } }],
          toolChoice: { tool: { name: "go" } }
        }
      }
    }
  },
  {
    name: "an image and a file as data",
    wires: {
      chat: {
        ...chatLimit,
        messages: [
          {
            role: "user",
            content: [
              { type: "text", text: "What is this?" },
              { type: "image_url", image_url: { url: `data:image/png;base64,${png}` } },
              { type: "file", file: { filename: "a.pdf", file_data: `data:application/pdf;base64,${pdf}` } }
            ]
          }
        ]
      },
      messages: {
        ...messagesLimit,
        messages: [
          {
            role: "user",
            content: [
              { type: "text", text: "What is this?" },
              { type: "image", source: { type: "base64", media_type: "image/png", data: png } },
              {
                type: "document",
                source: { type: "base64", media_type: "application/pdf", data: pdf },
                title: "a.pdf"
              }
            ]
          }
        ]
      },
      responses: {
        ...responsesLimit,
        input: [
          {
            role: "user",
            content: [
              { type: "input_text", text: "What is this?" },
              { type: "input_image", image_url: `data:image/png;base64,${png}`, detail: "auto" },
              { type: "input_file", filename: "a.pdf", file_data: `data:application/pdf;base64,${pdf}` }
            ]
          }
        ]
      },
      google: {
        ...googleLimit,
        contents: [
          {
            role: "user",
            parts: [
              { text: "What is this?" },
              { inlineData: { mimeType: "image/png", data: png } },
              { inlineData: { mimeType: "application/pdf", data: pdf } }
            ]
          }
        ]
      },
      bedrock: {
        ...bedrockLimit,
        messages: [
          {
            role: "user",
            content: [
              { text: "What is this?" },
              { image: { format: "png", source: { bytes: png } } },
              { document: { format: "pdf", name: "a pdf", source: { bytes: pdf } } }
            ]
          }
        ]
      }
    }
  },
  {
    name: "an image by its address",
    wires: {
      chat: {
        ...chatLimit,
        messages: [{ role: "user", content: [{ type: "image_url", image_url: { url: "https://a.example/b.png" } }] }]
      },
      messages: {
        ...messagesLimit,
        messages: [
          { role: "user", content: [{ type: "image", source: { type: "url", url: "https://a.example/b.png" } }] }
        ]
      },
      responses: {
        ...responsesLimit,
        input: [
          {
            role: "user",
            content: [{ type: "input_image", image_url: "https://a.example/b.png", detail: "auto" }]
          }
        ]
      },
      google: {
        ...googleLimit,
        contents: [
          { role: "user", parts: [{ fileData: { fileUri: "https://a.example/b.png", mimeType: "image/png" } }] }
        ]
      },
      bedrock: "the upstream of this model accepts images as data, not by URL"
    }
  },
  {
    name: "audio",
    wires: {
      chat: {
        ...chatLimit,
        messages: [
          { role: "user", content: [{ type: "input_audio", input_audio: { data: "UklGRg==", format: "wav" } }] }
        ]
      },
      messages: "the upstream of this model accepts no audio",
      responses: "the upstream of this model accepts no audio",
      google: {
        ...googleLimit,
        contents: [{ role: "user", parts: [{ inlineData: { mimeType: "audio/wav", data: "UklGRg==" } }] }]
      },
      bedrock: "the upstream of this model accepts no audio"
    }
  },
  {
    name: "an answer by a schema",
    wires: {
      chat: {
        ...chatLimit,
        messages: [{ role: "user", content: "Where?" }],
        response_format: { type: "json_schema", json_schema: { name: "answer", schema: weather, strict: true } }
      },
      messages: {
        ...messagesLimit,
        messages: [{ role: "user", content: [{ type: "text", text: "Where?" }] }],
        output_config: { format: { type: "json_schema", schema: weather } }
      },
      responses: {
        ...responsesLimit,
        input: [{ role: "user", content: [{ type: "input_text", text: "Where?" }] }],
        text: { format: { type: "json_schema", name: "answer", schema: weather, strict: true } }
      },
      google: {
        contents: [{ role: "user", parts: [{ text: "Where?" }] }],
        generationConfig: {
          maxOutputTokens: 1000,
          responseMimeType: "application/json",
          responseJsonSchema: weather
        }
      },
      bedrock: {
        ...bedrockLimit,
        messages: [{ role: "user", content: [{ text: "Where?" }] }],
        outputConfig: {
          textFormat: {
            type: "json_schema",
            structure: { jsonSchema: { schema: JSON.stringify(weather), name: "answer" } }
          }
        }
      }
    }
  }
]
