package org.example;

class Keel {}
