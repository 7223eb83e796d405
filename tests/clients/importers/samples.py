"""Made-up configurations of other gateways, each with everything that its format can say, as far as it is known."""

from __future__ import annotations

from typing import Any, Final

__all__ = ["REGISTRY_ENTRY", "SAMPLES"]

SAMPLES: Final[dict[str, dict[str, Any]]] = {
    "toolhive": {
        "schema_version": "v0.1.0",
        "name": "tickets",
        "image": "registry.example/tickets:1.2",
        "transport": "stdio",
        "host": "127.0.0.1",
        "port": 41234,
        "cmd_args": ["--read-only"],
        "env_vars": {"REGION": "eu"},
        "secrets": ["tickets-token,target=TICKETS_TOKEN"],
        "volumes": ["/srv/tickets:/data:ro"],
        "tools_filter": ["new_ticket", "find"],
        "tools_override": {
            "createTicket": {"name": "new_ticket", "description": "Opens a ticket."},
            "find": {"description": "Finds."},
            "closeTicket": {"name": "Close!"},
        },
        "permission_profile": {"network": {"outbound": {"allow_host": ["tickets.example"]}}},
        "group": "default",
    },
    "litellm": {
        "model_list": [{"model_name": "m"}],
        "litellm_settings": {"mcp_aliases": {"tk": "tickets"}, "drop_params": True},
        "mcp_servers": {
            "tickets": {
                "url": "https://tickets.example/mcp",
                "transport": "http",
                "auth_type": "bearer_token",
                "auth_value": "os.environ/TICKETS_TOKEN",
                "static_headers": {"X-Team": "core"},
                "allowed_tools": ["create_ticket"],
                "disallowed_tools": ["drop_all"],
                "tool_name_to_display_name": {"create_ticket": "new_ticket", "tickets-find": "look_up"},
                "tool_name_to_description": {"create_ticket": "Opens."},
                "access_groups": ["dev"],
                "mcp_info": {"logo_url": "x"},
            },
            "clock": {"transport": "stdio", "command": "uvx", "args": ["clock-server"], "env": {"TZ": "UTC"}},
            "old": {"url": "https://old.example/sse", "auth_type": "oauth2", "client_id": "c"},
            "api": {"url": "https://api.example", "spec_path": "openapi.json"},
        },
    },
    "contextforge": {
        "version": "2025-03-26",
        "exported_at": "2026-01-01T00:00:00Z",
        "encryption_method": "AES-256-GCM",
        "entities": {
            "gateways": [
                {
                    "id": "g1",
                    "name": "tickets",
                    "url": "https://tickets.example/mcp",
                    "transport": "STREAMABLEHTTP",
                    "auth_type": "bearer",
                    "auth_value": "gAAAAAencrypted",
                    "enabled": True,
                },
                {"name": "clock", "url": "https://clock.example/sse", "transport": "SSE", "enabled": False},
            ],
            "tools": [
                {"name": "tickets-create", "original_name": "create", "custom_name": "new_ticket", "gateway_id": "g1"},
                {"name": "weather", "integration_type": "REST", "url": "https://w.example"},
            ],
            "servers": [{"name": "bundle", "tool_ids": ["t1"]}],
            "prompts": [{"name": "greet"}],
        },
        "metadata": {"entity_counts": {"gateways": 2}},
    },
    "agentgateway": {
        "binds": [
            {
                "port": 3000,
                "listeners": [
                    {
                        "routes": [
                            {
                                "policies": {"cors": {"allowOrigins": ["*"]}, "jwtAuth": {"issuer": "me"}},
                                "backends": [
                                    {
                                        "mcp": {
                                            "targets": [
                                                {
                                                    "name": "tickets",
                                                    "stdio": {"cmd": "npx", "args": ["tickets"], "env": {"A": "b"}},
                                                },
                                                {
                                                    "name": "far",
                                                    "mcp": {"host": "far.example", "port": 443, "path": "/x"},
                                                },
                                                {"name": "old", "sse": {"host": "http://old.example:8080/sse"}},
                                                {"name": "api", "openapi": {"host": "a", "schema": {"file": "x"}}},
                                            ]
                                        },
                                        "policies": {
                                            "mcpAuthorization": {
                                                "rules": ['mcp.tool.name == "echo"', 'jwt.sub == "me"']
                                            }
                                        },
                                    }
                                ],
                            }
                        ]
                    }
                ],
            }
        ],
    },
    "docker": {"registry": {"tickets": {"ref": ""}, "clock": {"ref": ""}}},
    "mcpproxy": {
        "listen": "127.0.0.1:8080",
        "api_key": "k",
        "mcpServers": [
            {
                "name": "tickets",
                "protocol": "http",
                "url": "https://tickets.example/mcp",
                "headers": {"X-Team": "core"},
                "enabled": True,
                "enabled_tools": ["find"],
            },
            {
                "name": "clock",
                "protocol": "stdio",
                "command": "uvx",
                "args": ["clock"],
                "working_dir": "/srv",
                "enabled": False,
            },
            {"name": "new", "command": "npx", "args": ["new"], "quarantined": True, "enabled": True},
        ],
    },
    "ubie": {
        "mcpServers": {
            "tickets": {
                "command": "npx",
                "args": ["tickets"],
                "_extensions": {"tools": {"allow": ["a"], "deny": ["b"]}},
            }
        }
    },
    "mcphub": {
        "mcpServers": {
            "tickets": {
                "type": "streamable-http",
                "url": "https://tickets.example/mcp",
                "headers": {"Authorization": "Bearer $TICKETS_TOKEN"},
                "enabled": True,
                "options": {"timeout": 60000},
                "tools": {"create": {"enabled": False}, "find": {"enabled": True, "description": "Finds."}},
            },
            "clock": {"command": "uvx", "args": ["clock"], "enabled": False},
            "api": {"type": "openapi", "openapi": {"url": "https://api.example"}},
        },
        "users": [{"username": "admin", "password": "$2b$10$hash", "isAdmin": True}],
        "groups": [{"name": "g", "servers": ["tickets"]}],
    },
    "1mcp": {
        "$schema": "https://docs.1mcp.app/schemas/v1.0.0/mcp-config.json",
        "version": "1.0.0",
        "serverDefaults": {"timeout": 30000},
        "mcpServers": {
            "tickets": {
                "command": "npx",
                "args": ["tickets"],
                "env": ["PATH", "TZ=UTC"],
                "tags": ["core"],
                "disabledTools": ["drop"],
                "toolDescriptionOverrides": {"find": "Finds."},
                "restartOnExit": True,
            },
            "maybe": {"command": "x", "disabled": "{?project.environment=production}"},
        },
        "mcpTemplates": {"ctx": {"command": "node", "args": ["{project.path}"]}},
    },
    "metamcp": {
        "mcpServers": {
            "tickets": {
                "type": "STREAMABLE_HTTP",
                "url": "https://tickets.example/mcp",
                "bearerToken": "abcdef123456",
                "description": "Tickets.",
            },
            "clock": {"type": "STDIO", "command": "uvx", "args": ["clock"], "env": {"TZ": "UTC"}},
        }
    },
    "fastmcp": {
        "mcpServers": {
            "tickets": {
                "url": "https://tickets.example/mcp",
                "transport": "http",
                "auth": "abcdef123456",
                "timeout": 5000,
                "tools": {
                    "create": {"name": "new_ticket", "arguments": {"a": {"name": "b"}}},
                    "drop": {"enabled": False},
                },
                "include_tags": ["public"],
            },
            "clock": {"command": "uvx", "args": ["clock"], "keep_alive": False, "auth": "oauth"},
        }
    },
}
REGISTRY_ENTRY: Final[dict[str, Any]] = {
    "$schema": "https://static.modelcontextprotocol.io/schemas/2025-09-29/server.schema.json",
    "name": "io.github.example/tickets",
    "description": "Tickets.",
    "version": "1.2.0",
    "packages": [
        {
            "registryType": "npm",
            "identifier": "@example/tickets",
            "version": "1.2.0",
            "transport": {"type": "stdio"},
            "runtimeHint": "npx",
            "runtimeArguments": [{"type": "named", "name": "--quiet"}],
            "packageArguments": [
                {"type": "positional", "value": "serve"},
                {"type": "named", "name": "--region", "default": "eu"},
                {"type": "named", "name": "--root", "isRequired": True, "format": "filepath"},
                {"type": "named", "name": "--optional", "valueHint": "x"},
            ],
            "environmentVariables": [
                {"name": "TICKETS_TOKEN", "isSecret": True, "isRequired": True},
                {"name": "LEVEL", "default": "info"},
                {"name": "UNUSED"},
            ],
        }
    ],
}
