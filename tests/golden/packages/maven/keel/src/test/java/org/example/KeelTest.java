package org.example;

class KeelTest {}
